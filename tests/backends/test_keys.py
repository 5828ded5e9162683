"""Several keys for one service: the next is tried when one is refused, spent or limited, and the one that works is kept."""

from __future__ import annotations

import json

import pytest

from nexi.backends import Settings, create_backend
from nexi.backends.sender import BackendRequest, BackendResponse
from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.types import Hit, Query

GOOD = json.dumps({"results": [{"title": "T", "url": "https://a.example", "content": "C"}]}).encode()
HIT = Hit("https://a.example", "T", "C", "", "tavily")


class Keys:
    """A service that answers each key with its own status."""

    def __init__(self, **statuses: int) -> None:
        self.statuses = statuses
        self.asked: list[str] = []

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        key = request.headers["Authorization"].removeprefix("Bearer ")
        self.asked.append(key)
        status = self.statuses[key]
        return BackendResponse(status, {}, GOOD if status == 200 else b'{"message": "because"}')


def tavily(keys: Keys) -> SearchBackend:
    first, *spares = keys.statuses
    return create_backend("tavily", Settings(api_key=first, spare_keys=tuple(spares)), keys)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [401, 402, 403, 429])
async def test_the_next_key_is_tried_and_remembered(status: int) -> None:
    keys = Keys(one=status, two=200, three=200)
    backend = tavily(keys)
    assert [await backend.search(Query("q")), await backend.search(Query("q"))] == [[HIT], [HIT]]
    assert keys.asked == ["one", "two", "two"]


async def test_a_key_that_fails_later_gives_way_to_the_others_in_a_circle() -> None:
    keys = Keys(one=429, two=200)
    backend = tavily(keys)
    await backend.search(Query("q"))
    keys.statuses = {"one": 200, "two": 429}
    await backend.search(Query("q"))
    assert keys.asked == ["one", "two", "two", "one"]


async def test_when_no_key_is_accepted_the_error_says_how_many_were_tried() -> None:
    keys = Keys(one=401, two=402)
    with pytest.raises(BackendError) as caught:
        await tavily(keys).search(Query("q"))
    assert (caught.value.code, keys.asked) == ("quota", ["one", "two"])
    assert caught.value.cause == "none of the 2 keys is accepted; the last: HTTP 402: because"


@pytest.mark.parametrize("status", [400, 500])
async def test_another_failure_is_not_blamed_on_the_key(status: int) -> None:
    keys = Keys(one=status, two=200)
    with pytest.raises(BackendError):
        await tavily(keys).search(Query("q"))
    assert keys.asked == ["one"]
