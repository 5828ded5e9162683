"""Notices: texts that keep their code and their values on the way to a door, and lose them nowhere else."""

from __future__ import annotations

import copy
import json

from nexi.errors import NoEvidenceError
from nexi.events import RunFailed, Warned, decode, encode
from nexi.notices import Notice, join_sentences, list_notices, map_notice, restore_notices
from nexi.types import StopReason, Usage

CAUSE = Notice("network.no_listener", "nothing answers at that address")
NOTICE = Notice("service.unreachable", "{service} cannot be reached", service="SearXNG")


def test_a_notice_is_the_english_text_with_its_values() -> None:
    assert NOTICE == "SearXNG cannot be reached"
    assert (NOTICE.code, NOTICE.values) == ("service.unreachable", {"service": "SearXNG"})


def test_an_error_is_one_notice_with_its_cause() -> None:
    error = NoEvidenceError(NOTICE, cause=CAUSE)
    assert str(error) == "SearXNG cannot be reached: nothing answers at that address"
    assert list_notices([str(error)]) == {
        "SearXNG cannot be reached: nothing answers at that address": {
            "code": "joined.cause",
            "values": {"message": "SearXNG cannot be reached", "cause": "nothing answers at that address"},
        },
        "SearXNG cannot be reached": {"code": "service.unreachable", "values": {"service": "SearXNG"}},
        "nothing answers at that address": {"code": "network.no_listener", "values": {}},
    }


def test_sentences_are_joined_where_both_are_there() -> None:
    assert join_sentences(NOTICE, "") is NOTICE
    assert join_sentences("", NOTICE) is NOTICE
    assert join_sentences(NOTICE, "Start it.") == "SearXNG cannot be reached. Start it."


def test_texts_without_a_code_are_joined_to_one_without_a_code() -> None:
    assert list_notices([join_sentences("It is gone", "Look elsewhere."), str(NoEvidenceError("gone", cause="moved"))]) == {}


def test_an_event_carries_the_codes_of_its_notices_and_gets_them_back() -> None:
    event = RunFailed("no_evidence", NOTICE, CAUSE, "start it", StopReason.API_ERROR, 1, Usage(), 0.5)
    written = json.loads(json.dumps(encode(event)))
    assert written["notices"] == list_notices([NOTICE, CAUSE])
    read = decode(written)
    assert read == event
    assert encode(read) == written


def test_an_event_without_notices_says_nothing_of_them() -> None:
    assert encode(Warned("cut", "it breaks off")) == {"kind": "warned", "code": "cut", "message": "it breaks off", "cause": ""}


def test_a_change_reaches_the_values_too() -> None:
    outer = Notice("joined.cause", "{message}: {cause}", message=NOTICE, cause="key sk-12345")
    hidden = map_notice(outer, lambda text: text.replace("sk-12345", "[key]"))
    assert hidden == "SearXNG cannot be reached: key [key]"
    assert "sk-12345" not in str(list_notices([hidden]))
    assert map_notice("sk-12345", str.upper) == "SK-12345"


def test_a_copy_of_a_notice_is_one() -> None:
    assert list_notices([copy.deepcopy(NOTICE)]) == list_notices([NOTICE])


def test_a_table_that_names_itself_ends() -> None:
    read = restore_notices(["a"], {"a": {"code": "x", "values": {"v": "a"}}})
    assert (read, read[0].values) == (["a"], {"v": "a"})


def test_braces_in_a_value_stay_as_they_are() -> None:
    assert Notice("x", "{value} is wrong", value="{1: {}}") == "{1: {}} is wrong"
