"""Trust: the certificates that every client of nexi believes, the machine's own or those the operator names.

Above sit the adapters, each with clients of its own; the config says what is named. Nothing here reaches a network, and
`ssl` is imported only when a client needs a context.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from nexi.errors import ConfigError

if TYPE_CHECKING:
    import ssl

FIX = "correct SSL_CERT_FILE or SSL_CERT_DIR (in the config: ssl_cert_file, ssl_cert_dir), or unset it"


class Trust(Struct, frozen=True):
    """A file of certificates in PEM form, a folder of them under their hashes, or both; neither is the machine's own."""

    file: str = ""
    folder: str = ""

    def check(self) -> None:
        """Refuse at once what cannot hold certificates. Raises ConfigError."""
        if self.file and not Path(self.file).is_file():
            raise ConfigError("the certificates cannot be read", cause=f"{self.file} is no file", fix=FIX)
        if self.folder and not Path(self.folder).is_dir():
            raise ConfigError("the certificates cannot be read", cause=f"{self.folder} is no folder", fix=FIX)

    def context(self) -> ssl.SSLContext | None:
        """A context that believes only what is named; None where nothing is. Raises ConfigError."""
        if not (self.file or self.folder):
            return None
        import ssl

        try:
            return ssl.create_default_context(cafile=self.file or None, capath=self.folder or None)
        except OSError as error:  # ssl.SSLError is one
            cause = f"{self.file or self.folder}: {error.strerror or error}"
            raise ConfigError("the certificates cannot be used", cause=cause, fix=FIX) from error


MACHINE = Trust()


def trust_nobody() -> ssl.SSLContext:
    """For plain http: clients want a context and never use it, and loading certificates costs as much as a page."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
