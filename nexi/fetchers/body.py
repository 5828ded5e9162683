"""A response body under a cap: read piece by piece, inflated piece by piece, never more than was asked for.

One compressed piece can hold a thousand times its size, so inflating itself is bounded and not only the sum of what came out.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from msgspec import Struct

from nexi.errors import FetchError

MAX_MEMBERS = 64
ZSTD_WINDOW = 8_388_608  # what RFC 9659 lets a server ask of a client
ZSTD_PIECE = 256  # four bytes can stand for 128 KB, and the library does not bound what comes out of one call

_GZIP = 16 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS


class Body(Struct, frozen=True):
    """`received` counts the bytes on the wire; `truncated` says that the cap was reached and the rest left unread."""

    data: bytes
    received: int = 0
    truncated: bool = False


async def read_body(chunks: AsyncIterator[bytes], encoding: str, max_bytes: int) -> Body:
    """The body, decoded, cut at `max_bytes` of either form. Raises FetchError for what cannot be decoded."""
    name = encoding.strip().lower()
    if name not in ("", "identity", "x-gzip", *accepted_encodings().split(", ")):
        raise _decoding_error(f"it is encoded as {name[:60]!r}, which was not offered")
    inflate = _DECODERS[name]()
    parts: list[bytes] = []
    size = received = 0
    async for chunk in chunks:
        received += len(chunk)
        try:
            # One byte more than the cap tells a body that ends there from one that goes on.
            part = inflate.feed(chunk, max_bytes + 1 - size)
        except inflate.errors as error:
            raise _decoding_error(str(error)) from error
        parts.append(part)
        size += len(part)
        if size > max_bytes or received > max_bytes:
            return Body(b"".join(parts)[:max_bytes], received, truncated=True)
    if received and not inflate.is_complete:
        raise _decoding_error("the compressed body ends too early")
    return Body(b"".join(parts), received)


@cache
def accepted_encodings() -> str:
    """The value of Accept-Encoding: what can be undone here."""
    optional = [name for name, module in (("br", "brotli"), ("zstd", "zstandard")) if find_spec(module)]
    return ", ".join(["gzip", "deflate", *optional])


class _Decoder:
    """A body as it came; the others undo an encoding. `errors` are what `feed` raises besides FetchError."""

    errors: tuple[type[Exception], ...] = ()

    @property
    def is_complete(self) -> bool:
        return True

    def feed(self, chunk: bytes, room: int) -> bytes:
        return chunk[:room]


class _Inflater(_Decoder):
    errors = (zlib.error,)

    def __init__(self, wbits: int) -> None:
        self._wbits, self._zlib = wbits, zlib.decompressobj(wbits)
        self._fed, self._members = False, 1

    @property
    def is_complete(self) -> bool:
        return self._zlib.eof

    def feed(self, chunk: bytes, room: int) -> bytes:
        try:
            out = self._zlib.decompress(chunk, room)
        except zlib.error:
            # Servers send `deflate` with and without the zlib header; only the first bytes tell.
            if self._fed or self._wbits != zlib.MAX_WBITS:
                raise
            self._zlib = zlib.decompressobj(_RAW_DEFLATE)
            out = self._zlib.decompress(chunk, room)
        self._fed = True
        # gzip files may be several members one after the other; anything else after the last one is padding.
        is_gzip = self._wbits == _GZIP
        while is_gzip and len(out) < room and self._zlib.eof and self._zlib.unused_data.startswith(b"\x1f\x8b"):
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise _decoding_error(f"it has more than {MAX_MEMBERS} compressed parts")
            rest, self._zlib = self._zlib.unused_data, zlib.decompressobj(self._wbits)
            out += self._zlib.decompress(rest, room - len(out))
        return out


class _Brotli(_Decoder):
    def __init__(self) -> None:
        brotli: Any = import_module("brotli")
        self._brotli: Any = brotli.Decompressor()
        self.errors = (brotli.error,)

    @property
    def is_complete(self) -> bool:
        return bool(self._brotli.is_finished())

    def feed(self, chunk: bytes, room: int) -> bytes:
        out = bytearray()
        while True:
            out += self._brotli.process(chunk, output_buffer_limit=max(1, room - len(out)))
            chunk = b""
            if len(out) >= room or self.is_complete or self._brotli.can_accept_more_data():
                return bytes(out[:room])


class _Zstd(_Decoder):
    def __init__(self) -> None:
        zstandard: Any = import_module("zstandard")
        self._library: Any = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
        self._frame = self._library.decompressobj()
        self.errors = (zstandard.ZstdError,)
        self._frames = 1

    @property
    def is_complete(self) -> bool:
        return bool(self._frame.eof)

    def feed(self, chunk: bytes, room: int) -> bytes:
        out = bytearray()
        for start in range(0, len(chunk), ZSTD_PIECE):
            piece = chunk[start : start + ZSTD_PIECE]
            while piece:  # a body may be several frames one after the other
                if self._frame.eof:
                    self._frames += 1
                    if self._frames > MAX_MEMBERS:
                        raise _decoding_error(f"it has more than {MAX_MEMBERS} compressed parts")
                    self._frame = self._library.decompressobj()
                out += self._frame.decompress(piece)
                piece = self._frame.unused_data if self._frame.eof else b""
            if len(out) >= room:
                break
        return bytes(out[:room])


_DECODERS: Mapping[str, Callable[[], _Decoder]] = {
    **dict.fromkeys(("", "identity"), _Decoder),
    **dict.fromkeys(("gzip", "x-gzip"), partial(_Inflater, _GZIP)),
    "deflate": partial(_Inflater, zlib.MAX_WBITS),
    "br": _Brotli,
    "zstd": _Zstd,
}


def _decoding_error(cause: str) -> FetchError:
    return FetchError("the page could not be decoded", reason="error", cause=cause, fix="try another page")
