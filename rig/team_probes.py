"""Clients that ask a server without a pause, and note how long each reply took."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence

import httpx2

__all__ = ["Probes"]

Reply = tuple[float, float, int]  # when it was sent, seconds until the reply, status (0: none)


class Probes:
    """One client for each path."""

    paths = (
        "GET /v1/runs?limit=5",
        "GET /v1/runs/ID",
        "PUT /v1/runs/ID/shares",
        "GET /page/history",
        "GET /account",
        "GET /readyz",
    )

    def __init__(self, base: str, token: str, run_id: str) -> None:
        self._run_id = run_id
        self._base, self._headers = base, {"authorization": f"Bearer {token}"}
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(path,), daemon=True) for path in self.paths]
        self.replies: list[Reply] = []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, path: str) -> None:
        method, _, address = path.replace("ID", self._run_id).partition(" ")
        body = {"people": [], "team": False} if method == "PUT" else None
        with httpx2.Client(base_url=self._base, headers=self._headers, timeout=120, trust_env=False) as client:
            while not self._stopping.wait(0.1):
                sent = time.monotonic()
                try:
                    status = client.request(method, address, json=body).status_code
                except httpx2.TransportError:
                    status = 0
                self.replies.append((sent, time.monotonic() - sent, status))

    def between(self, first: float, last: float) -> list[Reply]:
        """Replies to what was on its way at any time between the two."""
        return [reply for reply in self.replies if reply[0] <= last and reply[0] + reply[1] >= first]

    @staticmethod
    def count(replies: Sequence[Reply]) -> Counter[int]:
        return Counter(status for _, _, status in replies)
