"""The page's own paths: safe HTML, evidence in its place, and a policy that lets nothing else in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from nexi.events import (
    ModelAsked,
    ModelReplied,
    PageFailed,
    SearchFinished,
    SentenceMark,
    ToolFinished,
    ToolStarted,
    Warned,
)
from nexi.types import Claim, Evidence, Failure, Source, Usage, Verdict, content_digest
from nexi.web.page import FILES
from nexi.web.page.assets import LANGUAGES, compact_source, index_bytes, static_bytes
from nexi.web.page.timeline import open_bars_of, timeline_of
from nexi.web.page.view import AnsweredRun, answer_html, draft_html, view_of
from tests.web import samples
from tests.web.world import MOON, QUESTION, serving

FOLDER = Path(__file__).resolve().parent.parent.parent / "nexi" / "web" / "page"
SOURCE = Source(1, "https://moon.example/", "Moon")


def claim(index: int, text: str, answer: str, verdict: Verdict = Verdict.FOUND) -> Claim:
    start = answer.index(text)
    evidence = Evidence(1, "https://moon.example/", "d", verdict, 1.0, 1.0, 0, 5, "The M", "said so")
    return Claim(index, text, start, start + len(text), verdict, True, "said so", (evidence,))


MAX_FIRST_VISIT_BYTES = 180_000  # as sent without compression; verdicts, whole threads and instant answers have room in it


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.js")) == sorted(name for name in FILES if name.endswith(".js"))
    sizes = {language: first_visit_bytes(language) for language in LANGUAGES}
    assert {language: size for language, size in sizes.items() if size >= MAX_FIRST_VISIT_BYTES} == {}
    assert len(index_bytes("en", True)) + sum(len(static_bytes(name, True)) for name in FILES) < 77_000  # with every panel
    html = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="([^"#]+)"', html) == [
        "/static/icon.svg",
        "/static/app.webmanifest",
        "/static/opensearch.xml",
        "/static/style.css",
        "/static/app.js",
        "/",
        "/",
        "/history",
        "/",
    ]
    assert re.findall(r" on\w+=| style=|<style|<script>", html) == []


def first_visit_bytes(language: str) -> int:
    """All that a browser loads before a panel is opened: the page in one language, and what its scripts import at once."""
    loaded, wanted = set(), ["app.js"]
    while wanted:
        loaded.add(name := wanted.pop())
        imported = re.findall(r'^import .*? from "\./(\w+\.js)";', (FOLDER / name).read_text(encoding="utf-8"), re.S | re.M)
        wanted += set(imported) - loaded
    assert {"runs.js", "knowledge.js", "check.js", "table.js", "setup.js", "settings.js"} & loaded == set()
    others = [name for name in FILES if not name.endswith(".js")]
    return len(index_bytes(language, False)) + sum(len(static_bytes(name, False)) for name in (*loaded, *others))


def test_files_are_sent_without_their_comments_and_indentation() -> None:
    script = '// why\nif (a) {\n  // and how\n  say("a // kept"); // and when\n}\n'
    assert compact_source("a.js", script) == 'if(a){\nsay("a // kept");\n}\n'
    spaced = 'a = b ? "x = y" : c - -d;\nsay(`a = ${b}`, / = /);\n'
    assert compact_source("a.js", spaced) == 'a=b?"x = y":c - -d;\nsay(`a = ${b}`, / = /);\n'
    assert compact_source("a.css", "/* a\n b */\np {\n  margin: 0; /* c */\n}\n") == "p{margin:0;}"
    assert compact_source("a.css", "p :is(a, b) > c:hover { font: 1rem a, b; }") == "p :is(a,b) > c:hover{font:1rem a,b;}"
    lines = [line for name in FILES if name.endswith(".js") for line in (FOLDER / name).read_text("utf-8").splitlines()]
    literals = [line.replace("```", "").replace("|`/g", "") for line in lines]  # patterns
    assert [line for line in literals if line.count("`") % 2] == []  # a text of several lines would lose its indentation


async def test_the_page_is_in_the_language_of_its_reader(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        asked = {
            "en": {},
            "de": {"accept-language": "de-AT,de;q=0.9,en;q=0.8"},
            "fr": {"accept-language": "pt;q=0.9, en;q=0.3, fr-CA;q=0.7"},
            "zh": {"accept-language": "zh-Hans-CN"},
            "ar": {"accept-language": "ar-EG"},
            "es": {"accept-language": "de", "cookie": "nexi-language=es"},
        }
        for language, headers in asked.items():
            reply = await served.client.get("/", headers=headers)
            assert reply.headers["content-language"] == language
            assert reply.headers["vary"] == "accept-encoding, accept-language, cookie"
            assert f'<html lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}">' in reply.text
            assert reply.content == index_bytes(language, False)
        nonsense = {"accept-language": "*, xx;q=, ;q=x", "cookie": "nexi-language=../../en"}
        assert (await served.client.get("/", headers=nonsense)).headers["content-language"] == "en"


async def test_it_is_served_under_a_strict_policy_also_for_a_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for path in (
            "/",
            "/runs/aaaaaa",
            "/spaces/flat",
            "/history",
            "/knowledge",
            "/check",
            "/table",
            "/setup",
            *(f"/static/{name}" for name in FILES),
        ):
            reply = await served.client.get(path)
            policy = reply.headers["content-security-policy"]
            assert (reply.status_code, policy.startswith("default-src 'none'; script-src 'self'")) == (200, True)
        assert (await served.client.get("/static/..%2f__init__.py")).status_code == 404


async def test_files_are_compressed_for_a_client_that_takes_them_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for path, body in (("/", index_bytes("en", False)), ("/static/style.css", static_bytes("style.css", False))):
            packed = await served.client.get(path, headers={"accept-encoding": "gzip"})
            plain = await served.client.get(path, headers={"accept-encoding": "identity"})
            assert packed.headers["content-encoding"] == "gzip"
            assert "content-encoding" not in plain.headers
            assert packed.content == plain.content == body
            assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2


async def test_a_finished_run_is_shown_with_its_evidence_in_the_stored_page(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        view = (await served.client.get(f"/page/runs/{run_id}")).json()
        assert (view["question"], view["figures"], view["sources"][0]["url"]) == (
            QUESTION,
            "1 of 1 sentence found in the cited pages",
            MOON,
        )
        assert {bar["lane"] for bar in view["timeline"]} == {"model", "search", "page"}
        evidence = view["claims"][0]["evidence"][0]
        asked = f"/page/runs/{run_id}/passage?source=1&start={evidence['start']}&end={evidence['end']}"
        passage = (await served.client.get(asked)).json()
        assert passage["span"] == "The Moon is 384,400 km from Earth on average."
        assert passage["before"].endswith("# Moon facts\n\n")


@pytest.mark.parametrize("asked", ["source=9&start=0&end=1", "source=1&start=-1&end=2", "source=1", "source=x&start=0&end=1"])
async def test_a_passage_that_cannot_be_shown_is_refused_in_words(tmp_path: Path, asked: str) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        reply = await served.client.get(f"/page/runs/{run_id}/passage?{asked}")
        assert reply.status_code in (400, 404)
        assert reply.json()["error"]


async def test_a_run_that_is_not_there_or_has_no_answer_is_refused_in_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await served.client.get("/page/runs/aaaaaa")).status_code == 404
        assert (await served.client.get("/page/runs/nonsense")).status_code in (400, 404)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](https://evil.example/pixel.png)",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>1</script>)",
        '[x](https://a.example/"onmouseover="alert(1))',
        "<svg/onload=alert(1)>",
        "`<b>code</b>`",
        "\ue0007\ue001 <b>",
    ],
)
def test_nothing_in_an_answer_becomes_markup_of_its_own(hostile: str) -> None:
    for html in (draft_html(hostile, ()), answer_html(hostile, (), ())):
        tags = {tag.lower() for tag in re.findall(r"<\s*/?\s*([a-zA-Z]+)", html)}
        assert tags <= {"p", "a", "code", "pre", "em", "strong"}
        assert not re.search(r"<[^>]*\son\w+\s*=", html)
        assert not re.search(r'href="(?!https?://)', html)


def test_citations_and_sentences_lead_to_their_claim_and_code_is_left_alone() -> None:
    answer = "The Moon is far [1]. It is **bright** [1].\n\n```\nx[1]\n```\n"
    claims = [claim(0, "The Moon is far [1].", answer), claim(1, "It is **bright** [1].", answer, Verdict.CONTRADICTED)]
    html = answer_html(answer, claims, [SOURCE])
    assert re.findall(r'data-n="1" data-claim="(\d)"', html) == ["0", "1"]
    assert re.findall(r'class="check v-(\w+)" data-claim="(\d)"', html) == [("contradicted", "1")]
    assert "<code>x[1]\n</code>" in html


@pytest.mark.parametrize(
    ("standing", "said"),
    [("retracted", "cites a retracted paper"), ("concern", "cites a paper with an expression of concern")],
)
def test_a_found_sentence_that_cites_a_retracted_paper_has_a_mark(standing: str, said: str) -> None:
    answer = "The Moon is far [1]."
    found = claim(0, answer, answer)
    marked = replace(found, evidence=tuple(replace(e, standing=standing) for e in found.evidence))
    html = answer_html(answer, [marked], [SOURCE])
    assert f'data-standing="{standing}" data-claim="0" aria-label="{said}: show the evidence">!\u00a0{said}</button>' in html
    assert "data-standing" not in answer_html(answer, [found], [SOURCE])


def test_a_number_that_names_no_source_is_left_as_text() -> None:
    assert answer_html("See [7].", (), [SOURCE]) == "<p>See [7].</p>\n"


def test_what_has_begun_and_not_ended_is_open_since_it_was_written() -> None:
    facts = [
        (1, ModelAsked(1, "answer", "m", 10)),
        (2, ModelAsked(1, "answer", "m", 10, agent="1.1")),
        (3, ModelReplied(1, "", (), Usage(), "tool_calls", 1.0)),
        (4, ToolStarted("c1", "web_search", "{}")),
        (5, ToolStarted("c2", "web_get", "{}")),
        (6, ToolStarted("c3", "final_answer", "{}")),
        (7, ToolFinished("c1", "web_search", True, "", 0.1)),
    ]
    moments = [f"2026-01-02T00:00:0{n}+00:00" for n, _ in facts]
    model = {"key": "model|1.1|1", "lane": "model", "who": "1.1", "label": "call 1", "failed": False, "start": 2.0}
    page = {"key": "tool||c2", "lane": "page", "who": "", "label": "web_get", "failed": False, "start": 5.0}
    assert open_bars_of(facts, moments, "2026-01-02T00:00:00+00:00") == [model, page]


def test_the_timeline_has_a_bar_for_every_call_search_and_page() -> None:
    facts = [
        (1, ModelReplied(1, "", (), Usage(), "stop", 0.5, "1.2")),
        (2, SearchFinished("q", "", (), (Failure("searxng", "network", "refused"),), 0.25)),
        (3, Warned("w", "w")),
        (4, PageFailed("https://a.example/x", "timeout", "too slow", 2.0)),
    ]
    moments = [f"2026-01-02T00:00:0{n}+00:00" for n in (1, 2, 3, 4)]
    assert timeline_of(facts, moments, "2026-01-02T00:00:00+00:00") == [
        {"lane": "model", "who": "1.2", "label": "call 1", "failed": False, "start": 0.5, "end": 1.0},
        {"lane": "search", "who": "", "label": "q", "failed": True, "start": 1.75, "end": 2.0},
        {"lane": "page", "who": "", "label": "a.example: too slow", "failed": True, "start": 2.0, "end": 4.0},
    ]


def test_a_verdict_is_told_in_words_too_and_stays_in_the_row_of_its_table() -> None:
    answer = "| a | b |\n|---|---|\n| Moon | far [1] |\n\nAfter [1]."
    claims = [claim(0, "| Moon | far [1] |", answer, Verdict.NOT_FOUND), claim(1, "After [1].", answer)]
    html = answer_html(answer, claims, [SOURCE])
    row = html[html.index("<td>far") : html.index("</tr>\n</tbody>")]
    assert re.findall(r'data-claim="(\d)"', row) == ["0", "0"]
    assert ">?\u00a0not found</button></span></td>" in row


def test_a_draft_has_the_marks_that_are_known_and_they_lead_nowhere_yet() -> None:
    text = "The Moon is far [1]. It is made of cheese [1]. It"
    marks = [SentenceMark(0, 20, Verdict.FOUND), SentenceMark(21, 46, Verdict.NOT_FOUND)]
    assert draft_html(text, marks) == (
        '<p>The Moon is far [1]. It is made of cheese <span class="end">[1].'
        '<span class="check v-not_found" title="not found">?\u00a0not found</span></span> It</p>\n'
    )
    assert draft_html("`code [1].` it", [SentenceMark(0, 11, Verdict.UNCHECKED)]) == (
        '<p><code>code [1].</code><span class="check v-unchecked" title="not checked">·\u00a0not checked</span> it</p>\n'
    )


def test_a_sentence_has_one_mark_and_the_warning_that_counts_them_is_left_to_the_figures() -> None:
    answer = "The Moon is cheese [1]. [unverified]\n"
    bad = claim(0, "The Moon is cheese [1].", answer, Verdict.NOT_FOUND)
    assert "[unverified]" not in answer_html(answer, [bad], [SOURCE])
    assert "[unverified]" in answer_html(answer, [bad], [SOURCE], leads_to="file")
    assert "[unverified]" in answer_html(answer, (), [SOURCE])  # without a check there is no mark but this one
    facts = samples.finished("Cheese?", answer, [SOURCE], [bad], warnings=("one is marked", "another"))
    ended = AnsweredRun("aaaaaa", facts[0], facts[-1], (Warned("unsupported", "one is marked"), *facts))
    assert view_of(ended)["warnings"] == ["another"]


def test_an_answer_says_what_was_warned_of_while_it_was_followed() -> None:
    facts = samples.finished("Cheese?", "The Moon is rock [1].", [SOURCE], [], warnings=("late", "early"))
    warned = (
        Warned("extractive", "early"),
        Warned("guided", "of one researcher", agent="1.1"),
        Warned("model_failed", "only told"),
    )
    ended = AnsweredRun("aaaaaa", facts[0], facts[-1], (facts[0], *warned, *facts[1:]))
    assert view_of(ended)["warnings"] == ["early", "only told", "late"]


def test_in_a_file_of_its_own_marks_are_links_within_it() -> None:
    answer = "The Moon is far [1] [2]."
    html = answer_html(answer, [claim(0, answer, answer)], [SOURCE, Source(2, "https://x.example/")], leads_to="file")
    assert re.findall(r'href="([^"]+)"', html) == ["#claim-0-1", "#source-2", "#claim-0"]
    assert "<button" not in html


async def test_the_whole_stored_text_is_given_on_asking_and_what_is_cut_is_said(tmp_path: Path) -> None:
    long = f"{'before ' * 400}NEEDLE{' after' * 400}"
    about = Source(1, "https://moon.example/", "Moon", content_digest(long))
    answer = "It is there [1]."
    found = samples.claim(0, answer, answer, Verdict.FOUND, (about, long, "NEEDLE"))
    async with serving(tmp_path) as served:
        runs = served.app.state.nexi.runs()
        await runs.pages.put(long)
        run_id = await samples.keep(runs, samples.finished("q", answer, [about], [found]))
        path = f"/page/runs/{run_id}/passage?source=1&start={long.index('NEEDLE')}&end={long.index('NEEDLE') + 6}"
        some, whole = (await served.client.get(path)).json(), (await served.client.get(f"{path}&whole=1")).json()
    assert (some["span"], some["cut"], some["left"], len(some["before"])) == ("NEEDLE", True, True, 1500)
    assert (whole["before"] + whole["span"] + whole["after"], whole["cut"], whole["left"]) == (long, False, False)


def test_a_contradicted_sentence_names_the_value_of_the_page_as_text() -> None:
    answer = "It opened in 2016 [1]."
    found = claim(0, answer, answer, Verdict.CONTRADICTED)
    evidence = replace(found.evidence[0], other="<b>2006</b>")
    html = answer_html(answer, (replace(found, evidence=(evidence,)),), (SOURCE,))
    assert "✗\u00a0contradicted: the page has &lt;b&gt;2006&lt;/b&gt;</button>" in html


async def test_a_browser_may_ask_from_its_address_bar_and_another_site_may_not(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        described = await served.client.get("/static/opensearch.xml")
        assert described.headers["content-type"].startswith("application/opensearchdescription+xml")
        assert f'template="{str(served.client.base_url).rstrip("/")}/?q={{searchTerms}}"' in described.text
        assert f'template="{str(served.client.base_url).rstrip("/")}/suggest?q={{searchTerms}}"' in described.text
        typed = await served.client.get("/?q=how+far", headers={"sec-fetch-site": "none"})
        assert typed.status_code == 200
        for site in ("cross-site", "same-site", "unheard-of"):
            foreign = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
            led = await served.client.get("/?q=how+far+%26+wide", headers=foreign, follow_redirects=False)
            assert (led.status_code, led.headers["location"]) == (303, "/?draft=how+far+%26+wide")
