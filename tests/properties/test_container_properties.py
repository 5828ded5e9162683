"""The state of the container is read whatever is in its file, and an image has one full name."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nexi.backends.container import SettingsDraft, State, User, decode_state
from nexi.backends.container.engine import image_reference

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
FIELDS = ("schema", "command", "container", "image", "settings", "port", "users", "kept")
USERS = st.builds(User, st.integers(1, 99999), st.text(max_size=8), st.text(max_size=8))
STATES = st.builds(
    State, *[st.text(max_size=8)] * 4, st.integers(0, 65535), st.lists(USERS, max_size=4).map(tuple), st.booleans()
)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,8}(:[0-9]{1,4})?(/[a-z0-9]{1,8}){0,2}(:[a-z0-9]{1,6})?", fullmatch=True)


@given(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON | st.just("nexi-searxng-1"))))
def test_any_json_is_a_state_or_none(data: object) -> None:
    state = decode_state(json.dumps(data).encode())
    assert state is None or decode_state(msgspec.json.encode(state)) == state


@given(STATES, USERS)
def test_a_state_survives_its_file_and_a_user_who_joins_and_leaves_changes_nothing(state: State, user: User) -> None:
    assert decode_state(msgspec.json.encode(state)) == state
    assert state.with_user(user).without_seat(user.seat) == state.without_seat(user.seat)
    assert state.with_user(user).with_user(user) == state.with_user(user)


@given(NAMES, st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True))
def test_a_full_name_stays_as_it_is(image: str, tag: str) -> None:
    full = image_reference(image, tag)
    assert image_reference(full, "other") == full
    assert ":" in full.rpartition("/")[2]


@given(st.text(max_size=40), st.lists(st.text(max_size=20), max_size=2).map(tuple))
def test_what_is_filled_in_stays_one_value_on_one_line(secret: str, proxies: tuple[str, ...]) -> None:
    text = SettingsDraft("a: {{secret_key}}\nb: {{ proxies }}\n", proxies).fill_in(secret)
    first, second = text.splitlines()
    assert json.loads(first.removeprefix("a: ")) == secret
    assert json.loads(second.removeprefix("b: ")) == ({"all://": list(proxies)} if proxies else {})


def test_the_packaged_settings_use_every_value_once() -> None:
    packaged = Path(__file__).parents[2] / "nexi" / "backends" / "container" / "default-settings.yml"
    lines = [line for line in packaged.read_text(encoding="utf-8").splitlines() if "{{" in line and not line.startswith("#")]
    assert lines == ["  secret_key: {{secret_key}}", "  proxies: {{proxies}}", "  {{engine_keys}}"]
