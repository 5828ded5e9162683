"""The texts of the page: every language has those of English with the same values, and none is left in the scripts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from nexi.app.mark_figures import MEANINGS, _rule_figures
from nexi.notices import list_notices
from nexi.types import StopReason, Verdict
from nexi.web.page.assets import LANGUAGES, choose_language, render_index
from tests.wording import ROOT, find_old_words, strip_comments

FOLDER = ROOT / "nexi" / "web" / "page"
TEXTS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (FOLDER / "texts").glob("*.json")}
ENGLISH = TEXTS["en"]
SCRIPTS = {path.name: strip_comments(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.js")}
OTHERS = [language for language in LANGUAGES if language != "en"]
# Forms that a language has for counts of the page, which are whole numbers below a million.
PLURALS = {
    "en": {"one", "other"},
    "de": {"one", "other"},
    "es": {"one", "other"},
    "fr": {"one", "other"},
    "zh": {"other"},
    "ar": {"other"},  # counts are labels with a number, which is the same for each of its six plurals
}
# Texts that are the same word in both languages, or hold nothing to translate.
MAX_SAME = {"de": 20, "es": 20, "fr": 24, "zh": 8, "ar": 8}
# Names, markup and what a browser calls things: nothing that a reader is told.
NAMES = {
    "Markdown",
    "BibTeX",
    "English",
    "Deutsch",
    "Español",
    "Français",
    "Notification",
    "Files",
    "SearXNG",
    "DuckDuckGo",
    "Wikipedia",
}
NAMES |= {"Esc", "Enter", "Escape", "Backspace", "Shift Enter", "Ctrl K"}
MARKUP = re.compile(
    r"^state\. is set by|[<>=\[\]#\\/:]|^\(|^\.|^[a-z][\w-]*( [a-z][\w-]*)*$|^Bearer |, button$|, textarea|, table$|nexi-"
)
# Names that a script puts together from two parts.
COMPOSED = {"ask.answered", "ask.written", "ask.answered_alone", "ask.written_alone"}
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
_VALUE = re.compile(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")


def forms(text: Any) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


def values_of(text: Any) -> set[str]:
    return {name for form in forms(text) for name in re.findall(r"\{(\w+)\}", form)}


def entries(language: str) -> Iterator[tuple[str, Any]]:
    for section, texts in TEXTS[language].items():
        for name, text in texts.items():
            yield f"{section}: {name}", text


def test_there_is_a_file_for_each_language() -> None:
    assert sorted(TEXTS) == sorted(LANGUAGES)


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_the_texts_of_english_with_the_same_values(language: str) -> None:
    told, english = dict(entries(language)), dict(entries("en"))
    assert list(told) == list(english)
    assert {name: text for name, text in told.items() if values_of(text) != values_of(english[name])} == {}
    assert [name for name, text in told.items() if isinstance(text, str) != isinstance(english[name], str)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_counts_have_every_plural_of_their_language(language: str) -> None:
    plurals = {name: set(text) for name, text in entries(language) if not isinstance(text, str)}
    assert {name: found for name, found in plurals.items() if found != PLURALS[language]} == {}
    assert [name for name, text in entries(language) if not all(map(str.strip, forms(text)))] == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_is_translated(language: str) -> None:
    english = dict(entries("en"))
    same = [name for name, text in entries(language) if text == english[name] and re.sub(r"\{\w+\}|\W", "", str(text))]
    assert len(same) <= MAX_SAME[language], same


def test_the_page_names_each_of_its_texts_and_no_other() -> None:
    named = re.findall(r"\{\{(\w+)\}\}", (FOLDER / "index.html").read_text(encoding="utf-8"))
    assert set(named) - {"language", "direction", "texts"} == set(ENGLISH["page"])


def test_the_scripts_name_each_of_their_texts_and_no_other() -> None:
    """A name that is put together begins as one in the file does; what may follow is in its list of states or codes."""
    known, code = set(ENGLISH["scripts"]), "\n".join(SCRIPTS.values())
    named = {name for name in re.findall(r'"([a-z]+(?:\.[a-z_]+)?)"', code) if name in known}
    begun = tuple(re.findall(r"`([a-z]+\.)\$\{", code))
    unnamed = {name for name in known - named if not name.startswith(begun) and name not in COMPOSED}
    missing = {name for name in re.findall(r'say\("([^"]+)"', code) if name not in known}
    assert (unnamed, missing) == (set(), set())


@pytest.mark.parametrize(
    ("prefix", "codes"),
    [
        ("stop.", [stop.value for stop in StopReason if stop not in (StopReason.FINAL_ANSWER, StopReason.PLAIN_ANSWER)]),
        ("verdict.", [verdict.value for verdict in Verdict]),
        ("states.", ["waiting", "working", "reported", "failed"]),
        ("run.", ["running", "waiting", "finished", "failed", "unfinished", "damaged", "kept"]),
        ("answered.", ["likely", "no"]),
    ],
)
def test_what_the_server_names_by_a_code_has_a_text(prefix: str, codes: list[str]) -> None:
    assert [code for code in codes if prefix + code not in ENGLISH["scripts"]] == []


def find_shown_literals(source: str) -> list[str]:
    """Literals that read like words for people: several words, or one that begins with a capital."""
    texts = (match[1] if match[1] is not None else _VALUE.sub("", match[2]) for match in _STRING.finditer(source))
    found = (text for text in texts if re.search(r"[A-Za-z]{3,} +[A-Za-z]{2,}|^[A-Z][a-z]{2,}", text))
    return [text for text in found if text not in NAMES and not MARKUP.search(text)]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_no_words_of_its_own(name: str) -> None:
    assert find_shown_literals(SCRIPTS[name]) == []


def test_words_in_a_script_are_found() -> None:
    script = 'a("Nothing yet", `Read ${n} pages`, "Starting", "quiet main", "./core.js", "Arrow.", `v-${one}`)'
    assert find_shown_literals(script) == ["Nothing yet", "Read  pages", "Starting", "Arrow."]


def test_the_page_has_no_words_of_its_own() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    between = [text.strip() for text in re.findall(r">([^<]*)<", page)]
    labels = re.findall(r'(?:aria-label|title|placeholder|alt)="([^"]*)"', page)
    plain = {re.sub(r"\{\{\w+\}\}|\W", "", text) for text in (*between, *labels)}
    assert plain - {""} == {"nexi", "nexiquestion", "Esc", "exampleorgexamplecom"}
    assert re.findall(r'content: "[^"]*[A-Za-z]', (FOLDER / "style.css").read_text(encoding="utf-8")) == []


def test_english_uses_none_of_the_words_that_stop_a_reader() -> None:
    assert [found for _, text in entries("en") for form in forms(text) for found in find_old_words(form)] == []


def test_texts_cannot_end_the_element_that_holds_them() -> None:
    data = re.search(r'<script type="application/json" id="texts">(.*?)</script>', render_index("fr"), re.S)
    assert data is not None
    assert json.loads(data[1]) == TEXTS["fr"]["scripts"]
    assert "<" not in data[1]


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        ("", "", "en"),
        ("zh", "de", "zh"),
        ("xx", "es-MX", "es"),
        ("", "en;q=0.1,de;q=0.2", "de"),
        ("", "DE", "de"),
        ("", "*;q=x", "en"),
    ],
)
def test_the_language_is_the_one_chosen_or_the_first_of_the_browser(chosen: str, accepted: str, language: str) -> None:
    assert choose_language(chosen, accepted) == language


def test_the_commonest_failures_have_a_card_of_their_own() -> None:
    """Pages that are not read and files of a terminal never end a run."""
    told = (ROOT / "tests" / "golden" / "failures.txt").read_text(encoding="utf-8")
    codes = set(re.findall(r'^http: \d+ \{"error": \{"code": "(\w+)"', told, re.M)) - {
        "error",
        "blocked",
        "content_type",
        "exists",
    }
    table = SCRIPTS["problem.js"].partition("CARDS = {")[2].partition("\n};")[0]
    assert codes - set(re.findall(r"(\w+): (?:[A-Z{]|modelCard)", table)) == set()


def find_notices() -> dict[str, set[str]]:
    """The English of every notice in the code, by its code."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "nexi").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(func=ast.Name("Notice"), args=[ast.Constant(code), ast.Constant(text)]):
                    found.setdefault(code, set()).add(text)
                case ast.Call(func=ast.Name("_Kind"), args=[_, ast.Constant(code), ast.Constant(text), *_]):
                    found.setdefault(code, set()).add(text)
    return found


def test_what_the_server_says_is_in_the_table_of_sentences_as_it_says_it() -> None:
    assert {code: {text} for code, text in ENGLISH["sentences"].items()} == find_notices()


def test_a_notice_has_its_code_and_its_words_where_it_is_said() -> None:
    """So that the test above sees every one; the kinds of model failures are in a table of their own."""
    calls = [
        f"{path.name}: {ast.unparse(call)}"
        for path in (ROOT / "nexi").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Notice"
        if not all(isinstance(argument, ast.Constant) for argument in call.args)
    ]
    assert [call for call in calls if "kind.notice, kind.what" not in call] == []


def test_the_fixes_of_a_broken_searxng_can_be_translated() -> None:
    """The card of a question without evidence shows them."""
    code = (ROOT / "nexi" / "backends" / "searxng.py").read_text(encoding="utf-8")
    assert (len(re.findall(r"fix = Notice\(", code)), re.findall(r'fix ?= ?f?"', code)) == (8, [])


def test_what_a_mark_means_is_translated() -> None:
    told = [*MEANINGS.values(), *(figure.describe() for figure in _rule_figures())]
    assert [said for said in told if said not in list_notices(told)] == []
