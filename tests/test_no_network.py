"""The guard that keeps tests off the network works."""

from __future__ import annotations

import socket

import pytest

from nexi.llm.local import PORTS
from tests.conftest import NetworkUsedError


def test_a_connection_off_the_machine_fails_the_test() -> None:
    with socket.socket() as sock, pytest.raises(NetworkUsedError):
        sock.connect(("203.0.113.1", 80))


def test_a_name_look_up_fails_the_test() -> None:
    with pytest.raises(NetworkUsedError):
        socket.getaddrinfo("example.com", 80)


@pytest.mark.parametrize("port", sorted(set(PORTS.values())))
def test_no_model_server_of_this_machine_is_reached(port: int) -> None:
    with socket.socket() as sock, pytest.raises(ConnectionRefusedError, match="refused by the rig"):
        sock.connect(("127.0.0.1", port))
