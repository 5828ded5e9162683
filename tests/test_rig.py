"""The loopback rig does what its callers count on: same web, same faults, same scripted replies, every time."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx2
import pytest

from rig import miniweb, score, scripted_llm

PAGES = [
    {
        "url": "http://birds.test/owl",
        "title": "Owl",
        "html": "<html><head><title>Owl</title></head><body><nav>menu</nav><p>The owl hunts at night.</p>"
        '<a href="http://birds.test/wren">wren</a></body></html>',
    },
    {"url": "http://birds.test/wren", "title": "Wren", "html": "<p>The wren is a small brown bird that sings by day.</p>"},
]


@pytest.fixture
def corpus_path(tmp_path: Path) -> Path:
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(p) + "\n" for p in PAGES), encoding="utf-8")
    return tmp_path


def get(url: str) -> httpx2.Response:
    return httpx2.get(url, timeout=300, trust_env=False)


def post(url: str, body: object) -> httpx2.Response:
    return httpx2.post(url, json=body, timeout=300, trust_env=False)


def test_the_mini_web_searches_and_serves_its_pages_with_links_to_itself(corpus_path: Path) -> None:
    with miniweb.serve(corpus_path) as base:
        hits = get(f"{base}/search?q=owl+night&format=json").json()["results"]
        page = get(hits[0]["url"]).text
    assert [(h["url"], h["title"], h["content"]) for h in hits] == [
        (f"{base}/birds.test/owl", "Owl", "The owl hunts at night.\nwren".replace("\n", " "))
    ]
    assert f'href="{base}/birds.test/wren"' in page


def test_the_server_and_its_thread_end_with_the_block(corpus_path: Path) -> None:
    before = set(threading.enumerate())  # other tests may keep a server of their own
    with miniweb.serve(corpus_path) as base:
        assert get(f"{base}/healthz").json() == {"ok": True, "pages": 2}
    with pytest.raises(httpx2.ConnectError):
        get(f"{base}/healthz")
    assert not [t for t in set(threading.enumerate()) - before if t.name == "miniweb"]


def test_faults_are_the_same_in_every_run(corpus_path: Path) -> None:
    def codes() -> list[int]:
        with miniweb.serve(corpus_path, rate_500=0.5, seed=3) as base:
            return [get(f"{base}/birds.test/owl").status_code for _ in range(8)]

    first = codes()
    assert set(first) == {200, 500}
    assert codes() == first


def test_a_page_that_is_not_in_the_corpus_is_a_404_and_is_counted(corpus_path: Path) -> None:
    with miniweb.serve(corpus_path) as base:
        assert get(f"{base}/birds.test/emu").status_code == 404
        assert get(f"{base}/stats").json()["page_404"] == 1


def test_the_scripted_model_searches_then_reads_then_answers() -> None:
    tools = [{"type": "function", "function": {"name": n}} for n in ("web_search", "web_get", "final_answer")]
    messages = [{"role": "user", "content": "When does the owl hunt?"}]
    with scripted_llm.serve() as root:
        called = []
        for result in ("http://birds.test/owl", "The owl hunts at night and sleeps by day.", ""):
            reply = post(f"{root}/v1/chat/completions", {"messages": messages, "tools": tools}).json()
            call = reply["choices"][0]["message"]["tool_calls"][0]["function"]
            called.append((call["name"], json.loads(call["arguments"])))
            messages.append({"role": "tool", "content": result})
        stats = get(f"{root}/stats").json()
    assert called == [
        ("web_search", {"queries": ["When does the owl hunt?"]}),
        ("web_get", {"urls": ["http://birds.test/owl"], "get_full": True}),
        ("final_answer", {"answer": "The owl hunts at night and sleeps by day. [1]"}),
    ]
    assert stats["chat_calls"] == 3


QUESTION = {"id": "q", "question": "?", "answers": ["by night"], "gold_urls": ["http://birds.test/owl"], "kind": "single"}


def test_an_answer_is_supported_when_it_holds_the_answer_and_cites_its_page() -> None:
    reply = {"answer": "Owls hunt by night [1].", "citations": ["http://127.0.0.1:9/birds.test/owl"]}
    row = score.score(QUESTION, reply)
    assert (row["contains"], row["cited"], row["supported"]) == (True, True, True)


@pytest.mark.parametrize(
    "reply",
    [
        {"answer": "Owls hunt by night.", "citations": []},
        {"answer": "Owls hunt by day.", "citations": ["http://birds.test/owl"]},
        {"answer": "by night " + "word " * 60, "citations": ["http://birds.test/owl"]},
        {"answer": "by night", "citations": ["http://birds.test/owl", "http://a.test/", "http://b.test/"]},
    ],
    ids=["no citation", "wrong", "too long", "cites too much"],
)
def test_an_answer_is_not_supported_without_its_page_or_its_brevity(reply: dict[str, object]) -> None:
    assert score.score(QUESTION, reply)["supported"] is False


def test_a_question_without_a_reply_counts_against_the_table() -> None:
    rows = score.table(
        [QUESTION, {**QUESTION, "id": "r"}], {"q": {"answer": "by night", "citations": ["http://birds.test/owl"]}}
    )
    assert (rows["all"]["n"], rows["all"]["supported"], rows["answered"]) == (2, 50.0, 1)
