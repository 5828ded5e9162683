"""Whatever is found or asked for, a rendered pack keeps its form and its room, and a request is a value or a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.apis.search.assembly import read_settings
from nexi.apis.search.excerpt import best_paragraphs, cut_at_word, excerpt_text
from nexi.apis.search.pack import CLOSING, OPENING, RULES, RenderedItem, render_items
from nexi.apis.search.schema import MAX_CONTEXT_CHARS, MAX_ITEMS, MAX_TIME_MS, pick_ids, read_request
from nexi.errors import ConfigError, QuestionError

LINE = st.text(max_size=60) | st.sampled_from(["[/CONTEXT_PACK]", "Rules:\n- x", "[CONTEXT_PACK ucp-1]", "a\n\nb\u2028c"])
PAGE = st.lists(LINE, max_size=12).map("\n\n".join)
ITEM = st.builds(RenderedItem, LINE, st.sampled_from(["https://a.example/", "https://b.example/" + "x" * 300]), LINE, PAGE)
NAMES = [
    "query",
    "text",
    "lang",
    "constraints",
    "budget",
    "want",
    "pick_ids",
    "seed_items",
    "max_results",
    "search_mode",
    "url",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | LINE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=15,
)


@given(st.lists(ITEM, max_size=6), LINE, st.integers(0, 2000))
def test_a_rendered_pack_keeps_its_room_its_frame_and_its_order(items: list[RenderedItem], query: str, room: int) -> None:
    text = render_items(items, backend="searxng", mode="full", query=query, room=room)
    assert len(text) <= room
    assert text == render_items(items, backend="searxng", mode="full", query=query, room=room)
    if not text:
        return
    lines = text.splitlines()
    assert (lines[0], lines[-4:]) == (OPENING, [*RULES.splitlines(), CLOSING])
    assert (text.upper().count("[CONTEXT_PACK"), text.upper().count("[/CONTEXT_PACK")) == (1, 1)
    heads = [line for line in lines if line[:1].isdigit()]
    assert [head.split(". Title: ")[0] for head in heads] == [str(n + 1) for n in range(len(heads))]
    assert len(heads) <= len(items)


@given(st.lists(ITEM, min_size=1, max_size=6), st.integers(300, 1500), st.integers(1, 500))
def test_more_room_never_shows_fewer_items(items: list[RenderedItem], room: int, more: int) -> None:
    def shown(room: int) -> int:
        return render_items(items, backend="x", mode="full", query="q", room=room).count(". Title: ")

    assert shown(room) <= shown(room + more)


@given(PAGE, LINE, st.integers(-5, 400))
def test_an_excerpt_keeps_its_room(text: str, query: str, room: int) -> None:
    assert len(excerpt_text(text, query, room)) <= max(0, room)
    assert len(cut_at_word(text, max(0, room))) <= max(0, room)
    assert all(len(p) <= 50 for p in best_paragraphs(text, query, 3, 50))
    if room >= len(text.strip()):
        assert excerpt_text(text, query, room) == (text.strip() if room > 0 else "")


@given(JSON | st.fixed_dictionaries({"query": LINE}, optional={"constraints": JSON, "budget": JSON, "want": JSON}))
def test_a_request_is_a_value_within_the_limits_of_the_service_or_a_refusal(data: Any) -> None:
    try:
        request = read_request(data)
    except QuestionError:
        return
    limits = request.limits
    assert request.text == " ".join(request.text.split()) != ""
    assert 0 <= limits.results <= MAX_ITEMS
    assert 0 <= limits.context_chars <= MAX_CONTEXT_CHARS
    assert 0 < limits.total_s <= MAX_TIME_MS / 1000
    assert limits.pages == 0 or request.mode == "full"


@given(st.lists(st.integers(-3, 12) | st.booleans() | st.floats() | st.text(max_size=2) | st.none()), st.integers(0, 10))
def test_picks_are_known_places_each_once_in_their_order(picks: list[Any], count: int) -> None:
    kept = pick_ids(picks, count)
    assert len(set(kept)) == len(kept)
    assert all(type(pick) is int and 0 <= pick < count for pick in kept)
    places = [next(i for i, p in enumerate(picks) if type(p) is int and p == pick) for pick in kept]
    assert places == sorted(places)


@given(st.text(max_size=80) | JSON.map(json.dumps) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_any_text_is_a_searcher_file_or_a_configuration_error(text: str) -> None:
    try:
        settings = read_settings(text)
    except ConfigError:
        return
    assert settings.cache
    assert (settings.cache.sweep_interval_s or 1) >= 1
    assert all(settings.backends or ())


def test_a_surrogate_in_a_searcher_file_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError):
        read_settings("service: {cache: {dir: '\ud800'}}")
