"""Bodies under a cap, in every encoding that is offered."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from nexi.errors import FetchError
from nexi.fetchers import transport
from nexi.fetchers.transport import Body, read_body

brotli: Any = pytest.importorskip("brotli")
zstandard: Any = pytest.importorskip("zstandard")

Compress = Callable[[bytes], bytes]
ENCODERS: dict[str, Compress] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: bytes(brotli.compress(data, quality=3)),
    "zstd": lambda data: bytes(zstandard.ZstdCompressor().compress(data)),
}
TEXT = b"".join(b"line %d of the page\n" % n for n in range(5_000))
every_encoding = pytest.mark.parametrize("encoding", ENCODERS)


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def cause_of(data: bytes, encoding: str) -> str:
    with pytest.raises(FetchError) as caught:
        await read_body(pieces(data, 4_096), encoding, 10_000_000)
    return caught.value.cause


def test_what_is_installed_is_offered() -> None:
    assert transport.accepted_encodings() == "gzip, deflate, br, zstd"


@every_encoding
@pytest.mark.parametrize("size", [7, 65_536, 10_000_000])
async def test_a_body_comes_out_whole(encoding: str, size: int) -> None:
    data = ENCODERS[encoding](TEXT)
    assert await read_body(pieces(data, size), encoding, len(TEXT)) == Body(TEXT, len(data))


@every_encoding
async def test_a_bomb_is_cut_at_the_cap(encoding: str) -> None:
    data = ENCODERS[encoding](b"a" * 20_000_000)
    got = await read_body(pieces(data, 65_536), encoding, 1_000)
    assert (got.data, got.truncated) == (b"a" * 1_000, True)


@every_encoding
async def test_no_step_of_inflating_gives_more_than_there_is_room_for(encoding: str) -> None:
    decoder = transport._DECODERS[encoding]()
    assert len(decoder.feed(ENCODERS[encoding](b"a" * 20_000_000), 1_000)) <= 1_000


@every_encoding
async def test_a_body_that_ends_too_early_is_an_error(encoding: str) -> None:
    assert await cause_of(ENCODERS[encoding](TEXT)[:-9], encoding) == "the compressed body ends too early"


@every_encoding
async def test_nonsense_is_an_error(encoding: str) -> None:
    assert await cause_of(b"\xff\xfe nonsense " * 50, encoding)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br, gzip", "compress", "x" * 500])
async def test_an_encoding_that_was_not_offered_is_an_error(encoding: str) -> None:
    assert "was not offered" in await cause_of(b"x", encoding)


async def test_frames_one_after_the_other_are_one_body_up_to_a_number() -> None:
    frame = ENCODERS["zstd"](b"ab")
    assert (await read_body(pieces(frame * 3, 5), "zstd", 100)).data == b"ababab"
    assert "compressed parts" in await cause_of(frame * 100, "zstd")


async def test_a_window_larger_than_a_client_must_have_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    assert await cause_of(stream.compress(TEXT) + stream.flush(), "zstd")
