"""The gate: every call to a model or an embedder is counted, written down first, and kept inside its scope and its budget."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi, RunRequest
from nexi.app.factory import PortFactory
from nexi.app.gate import ModelGate, _QuotaEmit, open_gate
from nexi.app.intake import DocumentIndexing
from nexi.app.questions import suggestions_after
from nexi.budget import Budget
from nexi.config import Config
from nexi.errors import LLMError, NexiError
from nexi.events import Delta, Fact, ModelAsked, ModelFailed, ModelReplied, RunFinished, RunStarted
from nexi.types import Embedded, Message, Reply, StopReason, Usage
from tests.raising import has_code

QUESTION = "Where does the shed key hang?"
NOTE = "# Garden\n\nThe shed key hangs behind the blue door of the garden house.\n"
FAR, NEAR = "http://203.0.113.9/v1", "http://127.0.0.1:9/v1"
NEXT = '{"queries": ["Who has the key?", "Where is the shed?", "What colour is the door?"]}'


class Facts:
    def __init__(self) -> None:
        self.facts: list[Fact] = []

    async def __call__(self, fact: Fact) -> None:
        self.facts.append(fact)

    def delta(self, delta: Delta) -> None:
        return None


class Model:
    """A model that keeps what it is sent."""

    name = "wise"

    def __init__(self, text: str = NEXT) -> None:
        self.text, self.sent = text, list[str]()

    async def complete(self, messages: Sequence[Message], tools: Sequence[Any] = (), **_: Any) -> Reply:
        self.sent.append(" ".join(m.content for m in messages))
        return Reply(self.text, usage=Usage(100, 20, cost=0.25))


class Letters:
    """An embedding endpoint that counts ten tokens for each text."""

    name, dims = "letters", 4

    def __init__(self) -> None:
        self.sent: list[int] = []

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        self.sent.append(len(texts))
        vectors = tuple(array("f", [0.5, 0.5, 0.5, 0.5]) for _ in texts)
        return Embedded(vectors, Usage(10 * len(texts), 0, cost=0.001))


class Quota:
    """What a team server counts for one person; the rest of her state is not needed here."""

    def __init__(self, runs: int = 1, tokens: int = 1000) -> None:
        self.runs, self.tokens, self.used, self.cost = runs, tokens, 0, 0.0

    def take_call(self, tokens: int, *, is_new: bool) -> None:
        if self.used >= self.tokens or (is_new and not self.runs):
            raise NexiError("you have reached your quota", cause="it is used", fix="wait", code="quota_reached")
        self.used += tokens

    def settle_call(self, estimate: int, usage: Usage) -> None:
        self.used += usage.total - estimate
        self.cost += usage.cost or 0.0


def remote_model(monkeypatch: pytest.MonkeyPatch, model: Model) -> None:
    monkeypatch.setattr(PortFactory, "_connect", lambda *_: model)


async def know_note(config: Config, folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "garden.md").write_text(NOTE, "utf-8")
    async with Nexi(config.override(model="extractive")) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(folder / "notes"))


async def end_of(nexi: Nexi, request: RunRequest) -> tuple[str, RunStarted, RunFinished]:
    async with nexi.run(request) as run:
        facts = [event async for event in run if isinstance(event, RunStarted | RunFinished)]
    started, finished = facts
    assert isinstance(started, RunStarted)
    assert isinstance(finished, RunFinished)
    return run.id, started, finished


@pytest.mark.parametrize(("address", "requests"), [(FAR, 0), (NEAR, 1)], ids=["another machine", "this machine"])
async def test_suggestions_after_a_local_answer_come_from_a_model_of_this_machine_or_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, requests: int
) -> None:
    config, model = Config(home=tmp_path / "home", model="wise", base_url=address), Model()
    await know_note(config, tmp_path)
    async with Nexi(config.override(base_url=FAR)) as nexi:
        ended = await end_of(nexi, RunRequest(QUESTION, scope="local"))
    remote_model(monkeypatch, model)
    async with Nexi(config) as nexi:
        suggestions = await suggestions_after(nexi, ended[0], ended[1:])
    assert "blue door" in ended[2].answer
    assert (len(suggestions), len(model.sent)) == (3 * requests, requests)


async def test_suggestions_pay_from_what_their_run_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, model = Config(home=tmp_path, model="wise", base_url=NEAR, max_tokens=5000), Model()
    remote_model(monkeypatch, model)
    started = RunStarted("moon?", "mid", "wise", "search", 5, {}, {"question": "moon?"})
    stop = StopReason.FINAL_ANSWER
    ends = {spent: RunFinished("It is far.", (), stop, 1, Usage(spent, 0), 1.0, 0, 1) for spent in (4990, 100)}
    async with Nexi(config) as nexi:
        (tmp_path / "runs").mkdir()
        spent = await suggestions_after(nexi, "a", [started, ends[4990]])
        assert (spent, model.sent) == ((), [])
        assert len(await suggestions_after(nexi, "b", [started, ends[100]])) == 3


async def test_a_model_on_another_machine_is_refused_to_local_work(tmp_path: Path) -> None:
    async with Nexi(Config(home=tmp_path, model="wise", base_url=FAR, embedding_base_url=FAR, embedding_model="e")) as nexi:
        gate = nexi.gate(is_local=True)
        with pytest.raises(LLMError) as refused:
            gate.open_llm("answer")
        assert has_code(refused, "local_scope")
        assert (gate.open_judge(), await gate.open_embedder(), await gate.list_models()) == (None, None, None)
        assert gate.open_context_llm() is None


async def open_embedding_gate(nexi: Nexi, budget: Budget) -> tuple[ModelGate, Facts]:
    facts = Facts()
    return open_gate(nexi.ports, budget=budget, emit=facts), facts


async def test_each_request_for_vectors_is_written_down_before_it_is_sent_and_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = Letters()
    monkeypatch.setattr(PortFactory, "_make_embedder", lambda _: letters)
    async with Nexi(Config(home=tmp_path, embedding_base_url=NEAR, embedding_model="letters")) as nexi:
        gate, facts = await open_embedding_gate(nexi, Budget(max_model_calls=0))
        embedder = await gate.open_embedder()
        assert embedder
        embedded = await embedder.embed(["word"] * 25)
    kinds = [(type(fact), getattr(fact, "purpose", ""), getattr(fact, "call", 0)) for fact in facts.facts]
    asked, replied = (ModelAsked, "embed"), (ModelReplied, "")
    assert kinds == [(*asked, 1), (*replied, 1), (*asked, 2), (*replied, 2)]
    assert letters.sent == [20, 5]
    assert (gate.meter.usage, embedded.usage, gate.meter.model_calls) == (
        Usage(250, 0, cost=0.002),
        Usage(250, 0, cost=0.002),
        0,
    )


async def test_no_vectors_are_asked_for_once_the_budget_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = Letters()
    monkeypatch.setattr(PortFactory, "_make_embedder", lambda _: letters)
    async with Nexi(Config(home=tmp_path, embedding_base_url=NEAR, embedding_model="letters")) as nexi:
        gate, _ = await open_embedding_gate(nexi, Budget(max_tokens=5))
        embedder = await gate.open_embedder()
        assert embedder
        with pytest.raises(LLMError) as refused:
            await embedder.embed(["many words " * 10])
    assert (refused.value.code, letters.sent) == ("budget_spent", [])


def test_indexing_behind_a_run_leaves_it_most_of_its_budget(tmp_path: Path) -> None:
    gate = open_gate(Nexi(Config(home=tmp_path)).ports, budget=Budget(max_tokens=10_000, max_cost=1.0))
    own = gate.for_indexing().meter
    assert (own.budget.max_tokens, own.budget.max_cost, own.parent) == (2000, 0.2, gate.meter)


async def test_a_call_that_is_cut_stays_counted_with_its_estimate() -> None:
    quota = Quota()
    emit = _QuotaEmit(quota, Facts())  # type: ignore[arg-type]
    await emit(ModelAsked(1, "task", "wise", 300))
    assert quota.used == 300
    await emit(ModelAsked(2, "task", "wise", 100))
    await emit(ModelReplied(2, "", (), Usage(120, 30, cost=0.5), "stop", 0.1))
    await emit(ModelFailed(3, "timeout", "", "", 0.1))
    assert (quota.used, quota.cost) == (450, 0.5)


@pytest.mark.parametrize("purpose", ["suggest", "json", "embed", "rerank", "context"])
async def test_what_belongs_to_a_run_needs_no_other_run(purpose: Any) -> None:
    quota = Quota(runs=0)
    await _QuotaEmit(quota, Facts())(ModelAsked(1, purpose, "wise", 300))  # type: ignore[arg-type]
    assert quota.used == 300


async def test_a_person_without_a_run_left_gets_no_call_that_belongs_to_no_run() -> None:
    quota = Quota(runs=0)
    with pytest.raises(LLMError) as refused:
        await _QuotaEmit(quota, Facts())(ModelAsked(1, "task", "wise", 300))  # type: ignore[arg-type]
    assert (refused.value.code, quota.used) == ("quota_reached", 0)
