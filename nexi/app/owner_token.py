"""OwnerToken: the secret by which a server on this machine knows its owner.

It lies in a private file, which is made with its content and never twice; a server that runs notices a new one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from nexi import files
from nexi.errors import StoreError

FILE_NAME = "token"
TOKEN_BYTES = 24
_BROWSER = b"nexi browser"
_FAILURE = "Could not keep the token of the server"


class OwnerToken:
    """The token in one folder of state, read again whenever its file has changed."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE_NAME
        self._seen: tuple[int, int] | None = None
        self._token = ""

    def ensure(self) -> str:
        """The token, made if there is none: of several processes that want to, one does. Raises StoreError."""
        if token := self.read():
            return token
        new = self.path.with_name(f".{FILE_NAME}.{secrets.token_hex()}.tmp")
        with files.translate_os_errors(_FAILURE, self.path):
            files.make_private_directory(self.path.parent)
            files.create_private_file(new, _new_token())
            try:
                with suppress(FileExistsError):
                    os.link(new, self.path)  # unlike a rename, it replaces nothing
            finally:
                new.unlink()
        return self.read() or self.renew()

    def renew(self) -> str:
        """Another token; whoever has the old one is nobody from now on. Raises StoreError."""
        with files.translate_os_errors(_FAILURE, self.path):
            files.make_private_directory(self.path.parent)
            files.replace_file(self.path, _new_token(), is_durable=True)
        return self.read()

    def read(self) -> str:
        """The token; "" where there is none. Raises StoreError where it cannot be read."""
        try:
            status = self.path.stat()
            if (status.st_mtime_ns, status.st_ino) != self._seen:
                self._token = self.path.read_text("ascii").strip()
                self._seen = (status.st_mtime_ns, status.st_ino)
        except FileNotFoundError:
            self._token, self._seen = "", None
        except (OSError, ValueError) as error:
            fix = "make it readable for you, or replace it: nexi token --new"
            raise StoreError("the token of the server cannot be read", cause=f"{error} ({self.path})", fix=fix) from error
        return self._token

    def is_token(self, text: str) -> bool:
        return _is_same(text, self.read())

    def is_cookie(self, text: str) -> bool:
        return _is_same(text, self.cookie)

    @property
    def cookie(self) -> str:
        """What a browser keeps instead of the token; it ends with the token."""
        token = self.read()
        return hmac.new(token.encode(), _BROWSER, hashlib.sha256).hexdigest() if token else ""


def _new_token() -> bytes:
    return secrets.token_urlsafe(TOKEN_BYTES).encode() + b"\n"


def _is_same(text: str, secret: str) -> bool:
    return bool(secret) and hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())
