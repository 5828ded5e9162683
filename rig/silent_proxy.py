"""A proxy before the socket of a Postgres, whose connections can fall silent while they stay open, as after a lost network."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["SilentProxy", "running_proxy"]

SOCKET = ".s.PGSQL.5432"


class SilentProxy:
    """Connections pass until they are told to be silent: the bytes of a silent one go nowhere, and nothing ends it."""

    def __init__(self, target: Path, folder: Path) -> None:
        self._target, self._folder = target, folder
        self._listener = socket.socket(socket.AF_UNIX)
        self._silent: set[int] = set()
        self._sockets: list[socket.socket] = []
        self._count = 0
        self._silences_new = False

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._folder}"

    def start(self) -> None:
        self._listener.bind(str(self._folder / SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self, *, new_ones_too: bool = False) -> None:
        """Let every connection that is open fall silent, and with `new_ones_too` those that follow."""
        self._silent |= set(range(self._count))
        self._silences_new = new_ones_too

    def stop(self) -> None:
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._target / SOCKET))
                number, self._count = self._count, self._count + 1
                if self._silences_new:
                    self._silent.add(number)
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(number, source, sink), daemon=True).start()

    def _pump(self, number: int, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if number not in self._silent:
                    sink.sendall(data)
            if number not in self._silent:
                sink.shutdown(socket.SHUT_WR)


@contextmanager
def running_proxy(url: str) -> Iterator[SilentProxy]:
    """A proxy before the database of an address with a socket."""
    folder = Path(tempfile.mkdtemp(prefix="nexi-px-", dir="/tmp"))  # a socket's path may not be long
    proxy = SilentProxy(Path(url.partition("host=")[2]), folder)
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.stop()
        shutil.rmtree(folder, ignore_errors=True)
