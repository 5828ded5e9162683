"""The pure parts of the server: places in a feed, and HTML of hostile text."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.app.hosting import Feed, Mark, mark_of
from nexi.events import Event, Fact, StatusDelta, TextDelta, Warned, is_fact
from nexi.web.page.view import html_of

EVENTS = st.lists(
    st.one_of(
        st.just(Warned("x", "y")),
        st.text(max_size=5).map(TextDelta),
        st.text(max_size=5).map(StatusDelta),
    ),
    max_size=25,
)


def fed(before: list[Fact], events: list[Event]) -> Feed:
    feed = Feed(before)
    for event in events:
        feed.put(event)
    feed.end()
    return feed


async def followed(feed: Feed, mark: Mark) -> list[tuple[str, Event]]:
    return [(str(item.mark), item.event) async for item in feed.follow(mark) if item]


@given(EVENTS)
@settings(max_examples=50, deadline=None)
def test_from_every_place_a_reader_gets_exactly_the_rest(events: list[Event]) -> None:
    async def check() -> None:
        feed = fed([], events)
        whole = await followed(feed, Mark())
        assert [event for _, event in whole] == events
        for index, (text, _) in enumerate(whole):
            mark = mark_of(text)
            assert mark is not None
            assert await followed(feed, mark) == whole[index + 1 :]
        assert await followed(feed, Mark(len(events) + 5)) == []

    asyncio.run(check())


@given(EVENTS)
@settings(max_examples=30, deadline=None)
def test_a_place_of_a_feed_that_is_gone_leads_to_the_next_fact(events: list[Event]) -> None:
    """After a restart only facts are there: a reader that saw deltas goes on with the fact that follows them."""

    async def check() -> None:
        facts = [event for event in events if is_fact(event)]
        for text, _ in await followed(fed([], events), Mark()):
            mark = mark_of(text)
            assert mark is not None
            rest = [event for _, event in await followed(fed(facts, []), mark)]
            assert rest == facts[mark.fact :]

    asyncio.run(check())


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


HOSTILE = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](https://evil.example/x.png)",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>)",
        "<https://a.example/>",
        '[x](https://a.example/"onclick=alert(1))',
        "<iframe src=//evil.example>",
        "[x]: vbscript:x\n[x]",
        "`<b>`",
        "| a | b |\n|---|---|\n| <i> | ![](x) |\n",
    ]
)


@given(st.lists(HOSTILE | st.text(max_size=20), max_size=8))
@settings(deadline=None)
def test_html_of_any_text_runs_nothing_and_loads_nothing(pieces: list[str]) -> None:
    reader = Tags()
    reader.feed(html_of("\n\n".join(pieces)))
    for tag, attributes in reader.found:
        assert tag not in ("script", "img", "iframe", "object", "style", "link", "svg", "form", "input", "meta", "base")
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert re.match(r"https?://", attributes.get("href") or "https://")
