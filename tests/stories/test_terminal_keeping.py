"""Stories of what is kept: a full disk, a read-only home, a killed run, several programs on one home, exports."""

from __future__ import annotations

import shutil
import signal
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from rig.terminal import CTRL_C
from tests.formats.documents import pdf
from tests.stories.world import FACT, PAGES, QUESTION, Screen, World, make_world, page

ANSWER = "The Moon is 384,400 km from Earth on average. [1]\n\nSources:\n[1] Moon facts - http://WEB/moon.test/facts"
READ = "Read Moon facts (127.0.0.1)\nRead Orbit of the Moon (127.0.0.1)\nRead Tides (127.0.0.1)"


@pytest.fixture
def disk(world: World) -> Path:
    """A small disk of its own that holds the home."""
    world.move_to_small_disk()
    return world.home.parent


def test_a_full_disk_is_one_warning_and_the_answer_comes(world: World, disk: Path) -> None:
    world.fill_disk()
    assert world.run(QUESTION) == Screen(
        0,
        ANSWER,
        "Warning: this run is not kept: Could not start a run log: No space left on device (HOME/runs). Free some disk space, "
        "for example old folders under runs, or set NEXI_HOME to another disk.\n"
        f'Searched "{QUESTION}": 3 results from searxng\n{READ}',
    )


def test_a_read_only_home_is_one_warning_and_the_answer_comes(world: World, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    done = world.run(QUESTION)
    assert (done.code, done.out) == (0, ANSWER)
    assert [line for line in done.err.splitlines() if line.startswith("Warning")] == [
        "Warning: this run is not kept: Could not start a run log: Read-only file system (HOME/runs). The file system is "
        "read-only: set NEXI_HOME to a folder that can be written."
    ]


def test_a_run_that_was_killed_goes_on_without_asking_twice(world: World) -> None:
    model = world.use_model()
    model.hold("answer")
    with world.terminal(QUESTION) as screen:
        model.wait_for("answer")
        screen.signal(signal.SIGKILL)
        screen.ending()
    model.release()
    assert world.run_list() == f"ID  TIME  unfinished  search    {QUESTION}"
    asked = model.reached["search"], model.reached["read"]
    resumed = world.run("resume", world.run_ids()[0])
    assert resumed.code == 0
    assert FACT.removesuffix(".") in resumed.out
    assert (model.reached["search"], model.reached["read"]) == asked
    assert world.run_list() == f"ID  TIME  finished    search    {QUESTION}"


def test_two_terminals_at_once_lose_nothing(world: World) -> None:
    questions = [QUESTION, "How long does the Moon take to go round the Earth?", "What raises the tides of the oceans?"]
    with ThreadPoolExecutor(len(questions)) as threads:
        screens = list(threads.map(world.run, questions))
    assert [screen.code for screen in screens] == [0, 0, 0]
    assert sorted(entry["query"] for entry in world.history()) == sorted(questions)
    assert check_knowledge(world) == sorted(page["title"] for page in PAGES)


def check_knowledge(world: World) -> list[str]:
    """The titles of the stored pages; the store must be sound."""
    sources = world.run("sources")
    assert "damaged" not in sources.err
    return sorted(page["title"] for page in PAGES if page["title"] in sources.out)


def test_the_page_and_terminals_share_one_home_and_nothing_is_lost(world: World) -> None:
    notes = world.folder / "notes"
    notes.mkdir()
    (notes / "shed.md").write_text("# Shed\n\nThe shed key hangs behind the blue door.\n")
    server = world.serve()
    owner = {"authorization": f"Bearer {world.run('token').out.strip()}"}
    for turn in range(3):
        asked = {"model": "nexi-m", "messages": [{"role": "user", "content": f"{QUESTION} {turn}"}]}
        reply = httpx2.post(f"{server.base}/v1/chat/completions", json=asked, headers=owner, timeout=120)
        assert reply.status_code == 200
        assert world.run(f"What raises the tides of the oceans {turn}?").code == 0
        assert world.run("index", str(notes)).code == 0
    server.stop()
    assert check_knowledge(world) == sorted(page["title"] for page in PAGES)
    assert "shed" in world.run("sources").out
    assert "malformed" not in (world.folder / "serve.log").read_text()
    knowledge = next(line for line in world.run("doctor").out.splitlines() if "knowledge " in line)
    assert knowledge.startswith("ok ")


def test_a_word_file_is_made_by_the_pandoc_that_is_installed(world: World) -> None:
    if not shutil.which("pandoc"):
        pytest.skip("pandoc is not installed")
    world.run(QUESTION)
    done = world.run("export", world.run_ids()[0], "--format", "docx", "-o", "answer.docx")
    assert (done.code, "Error" in done.err) == (0, False)
    with zipfile.ZipFile(world.folder / "answer.docx") as document:
        assert "384,400 km" in document.read("word/document.xml").decode()


def test_without_pandoc_the_way_to_get_it_is_said(world: World) -> None:
    world.run(QUESTION)
    done = world.run("export", world.run_ids()[0], "--format", "docx", "-o", "answer.docx", PATH=str(world.folder))
    assert done == Screen(
        1,
        "",
        "Error: no Word file can be made here: pandoc is not installed\n"
        "  Fix: install it (Debian: apt install pandoc; macOS: brew install pandoc), or export html and open that in Word",
    )


def test_a_port_in_use_is_said_in_words(world: World) -> None:
    server = world.serve()
    port = server.base.rpartition(":")[2]
    assert world.run("serve", "--port", port) == Screen(
        2,
        "",
        "Error: nexi cannot listen on 127.0.0.1:PORT: something else listens there\n"
        "  Fix: use another --port, or stop what listens there; 0 chooses a free one",
    )


def test_no_to_a_suggested_command_asks_nothing(world: World) -> None:
    with world.terminal("reserach", "moon") as screen:
        screen.expect("Did you mean `nexi research moon`? [Y/n]:")
        screen.type("n\r")
        done = world.look_at(screen)
    assert done == Screen(
        2,
        'Did you mean `nexi research moon`? [Y/n]: n\nNothing was asked. To ask it as a question: nexi -q "reserach moon"',
    )
    assert (world.web.searched.is_set(), world.run_ids()) == (False, [])


def test_a_file_that_is_attached_is_cited(world: World) -> None:
    (world.folder / "trial.md").write_text(
        "# Trial\n\nThe trial concludes that clover raises the yield of barley by 14 percent.\n"
    )
    done = world.run("-f", "trial.md", "What does the trial of clover and barley conclude?")
    assert done.code == 0
    assert "clover raises the yield of barley by 14 percent" in done.out
    assert "trial.md" in done.out.partition("Sources:")[2]


def test_a_pdf_that_is_attached_is_cited(world: World) -> None:
    (world.folder / "report.pdf").write_bytes(
        pdf(["The trial concludes that clover raises the yield of barley by 14 percent."])
    )
    done = world.run("-f", "report.pdf", "What does the trial of clover and barley conclude?")
    answer, _, sources = done.out.partition("\n\nSources:\n")
    assert (done.code, answer) == (0, "The trial concludes that clover raises the yield of barley by 14 percent. [1]")
    assert sources.startswith("[1] report.pdf - file:///")
    assert sources.endswith("/report.pdf")


def test_a_question_about_an_attached_pdf_is_answered_from_it_alone(tmp_path: Path) -> None:
    treaties = page("http://law.test/treaties", "Treaties", "States conclude treaties, which conclude with signatures.")
    report = "The trial concludes that clover raises the yield of barley by 14 percent."
    (tmp_path / "report.pdf").write_bytes(pdf([report]))
    with make_world(tmp_path, [treaties]) as world:
        done = world.run("-f", "report.pdf", "what does it conclude")
    assert done.out.partition("/")[0] == f"{report} [1]\n\nSources:\n[1] report.pdf - file:"


def test_a_question_that_an_attached_file_does_not_answer_is_answered_from_the_web(world: World) -> None:
    (world.folder / "trial.md").write_text("# Trial\n\nThe trial concludes that clover raises the yield of barley.\n")
    assert FACT in world.run("-f", "trial.md", QUESTION).out


def test_a_server_ends_with_ctrl_c_and_without_an_error(world: World) -> None:
    with world.terminal("serve", "--port", "0") as screen:
        screen.expect("http://127.0.0.1:")
        screen.type(CTRL_C)
        done = world.look_at(screen)
    assert done.code in (0, 130)
    assert "Traceback" not in done.out
    assert "Error" not in done.out
