"""Trials of a team server with many people: one who opens hundreds of streams, and two hundred who work for ten minutes."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from rig.postgres import running_postgres
from rig.team_fleet import TOWNS, TeamProcesses, memory_mb, running_world
from rig.trial_report import Report

__all__ = ["try_people", "try_streams"]

STREAMS, OTHERS, STREAMS_S = 512, 20, 60.0
PEOPLE, PEOPLE_S = 200, 600.0
IDLE_S = 90.0  # after which a server has closed what it kept for people
MAX_MB_PER_PERSON = 2.0
OPENED_IN_A_MINUTE = 500  # below the rate of one person, so that it is the number of open ones that is tried
REQUESTS = ("ask", "state", "list", "history", "search", "upload")


@dataclass
class Replies:
    """How long replies took, by what was asked for, and those that were refused or failed."""

    took: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in REQUESTS})
    refused: Counter[int] = field(default_factory=Counter)
    runs: int = 0

    def row(self, name: str) -> str:
        times = sorted(self.took[name])
        shares = (f"{1000 * times[min(len(times) - 1, int(share * len(times)))]:.0f}" for share in (0.5, 0.95, 0.99, 1.0))
        return f"| {name} | {len(times)} | {' | '.join(shares)} |" if times else f"| {name} | 0 | – | – | – | – |"


def render_counts(statuses: Mapping[str, int] | Mapping[int, int]) -> str:
    return ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))


class Member:
    """A person who asks, looks, searches her knowledge and uploads a file now and then."""

    def __init__(self, number: int, token: str, base: str, replies: Replies, address: str = "127.0.0.1") -> None:
        self._number, self._replies, self._chance = number, replies, random.Random(number)
        transport = httpx2.AsyncHTTPTransport(local_address=address)
        headers = {"authorization": f"Bearer {token}"}
        self._client = httpx2.AsyncClient(transport=transport, base_url=base, headers=headers, timeout=120, trust_env=False)
        self._run_id = ""

    async def work(self, seconds: float, pause_s: float, *, asks: float = 0.08) -> None:
        end = time.monotonic() + seconds
        async with self._client:
            await asyncio.sleep(self._chance.uniform(0, pause_s))
            await self.act("upload")
            while time.monotonic() < end:
                others = [name for name in REQUESTS if name not in ("ask", "upload")]
                await self.act("ask" if self._chance.random() < asks else self._chance.choice(others))
                await asyncio.sleep(self._chance.uniform(0.5, 1.5) * pause_s)

    async def act(self, name: str) -> None:
        town = self._chance.randrange(TOWNS)
        question = f"When was the lighthouse of Town{town} built?"
        method, path = {
            "ask": ("POST", "/v1/runs"),
            "state": ("GET", f"/v1/runs/{self._run_id}" if self._run_id else "/v1/runs?limit=1"),
            "list": ("GET", "/v1/runs?limit=20"),
            "history": ("GET", "/page/history"),
            "search": ("GET", "/page/knowledge/find?q=lighthouse"),
            "upload": ("POST", f"/page/files?name=note{self._number}.txt"),
        }[name]
        began = time.monotonic()
        if name == "upload":
            content = f"The lighthouse of Harbour{self._number} is {self._number} metres tall.".encode()
            reply = await self._client.post(path, content=content, headers={"content-type": "text/plain"})
        else:
            reply = await self._client.request(method, path, json={"question": question} if name == "ask" else None)
        self._replies.took[name].append(time.monotonic() - began)
        if reply.is_error:
            self._replies.refused[reply.status_code] += 1
        elif name == "ask":
            self._run_id, self._replies.runs = reply.json()["id"], self._replies.runs + 1


def open_streams(base: str, token: str, run_id: str, count: int, *, addresses: int) -> list[socket.socket]:
    """So many event streams of a run, from so many addresses, no faster than one person may ask."""
    port, streams = int(base.rpartition(":")[2]), []
    began = time.monotonic()
    for number in range(count):
        source = f"127.0.0.{2 + number % addresses}" if addresses > 1 else "127.0.0.1"
        stream = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))
        head = f"GET /v1/runs/{run_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        stream.sendall(head.encode())
        streams.append(stream)
        time.sleep(max(0.0, began + number * 60 / OPENED_IN_A_MINUTE - time.monotonic()))
    return streams


def count_statuses(streams: Sequence[socket.socket]) -> Counter[str]:
    """The status that each stream got, and "closed" for one that the server has ended since."""
    statuses: Counter[str] = Counter()
    for stream in streams:
        stream.settimeout(0.2)
        try:
            head = stream.recv(65_536)
        except OSError:
            statuses["none"] += 1
            continue
        found = re.match(rb"HTTP/1.1 (\d+)", head)
        statuses[found[1].decode() if found else "closed"] += 1
    return statuses


def try_streams(*, streams: int = STREAMS, others: int = OTHERS, seconds: float = STREAMS_S) -> Report:
    rows, is_sound = [], True
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        web, model = stack.enter_context(running_world(folder))
        database = Database(server.url).open()
        stack.callback(database.close)
        people = People(database)
        bob = people.add_token(people.add("Bob"), "trial")
        tokens = [people.add_token(people.add(f"Person {n}"), "trial") for n in range(others)]
        processes = TeamProcesses(server.url, folder, web, model)
        stack.callback(processes.stop)
        base = processes.start_server()
        processes.start_worker()
        with httpx2.Client(base_url=base, headers={"authorization": f"Bearer {bob}"}, trust_env=False, timeout=60) as client:
            body = {"question": "What do lighthouses have?", "mode": "research", "options": {"plan": True}}
            run_id = client.post("/v1/runs", json=body).raise_for_status().json()["id"]  # it waits with its plan

        def work(name: str, opened: Sequence[socket.socket]) -> None:
            nonlocal is_sound
            replies = Replies()

            async def everybody() -> None:
                members = [Member(n, token, base, replies) for n, token in enumerate(tokens)]
                await asyncio.gather(*(member.work(seconds, 2.0) for member in members))

            asyncio.run(everybody())
            statuses = count_statuses(opened)
            times = sorted(time for taken in replies.took.values() for time in taken)
            p50, p99 = (1000 * times[int(share * len(times))] for share in (0.5, 0.99))
            refused = sum(replies.refused.values())
            is_sound = is_sound and not refused
            took = f"{p50:.0f} / {p99:.0f} / {1000 * times[-1]:.0f}"
            rows.append(f"| {name} | {render_counts(statuses) or '–'} | {len(times)} | {refused} | {took} |")

        work("none", [])
        for name, addresses in (("from 8 addresses", 8), ("all from one address, as through a proxy", 1)):
            opened = open_streams(base, bob, run_id, streams, addresses=addresses)
            work(f"{streams} {name}", opened)
            for stream in opened:
                stream.close()
        seconds_left = time.monotonic() + 60
        while database.fetch("select count(*) from runs where state in ('waiting', 'running')")[0][0] > 1:
            assert time.monotonic() < seconds_left
            time.sleep(0.5)
        failed = database.fetch("select count(*) from runs where state = 'failed'")[0][0]
    lines = [
        "| streams of Bob | their replies | requests of the others | refused or failed | p50 / p99 / max ms |",
        "|---|---|---|---|---|",
        *rows,
        "",
        f"Runs of the others that failed: {failed}.",
    ]
    about = (
        f"Bob opens {streams} event streams of a run that waits, at one server, slower than his rate allows, and holds them "
        f"for {seconds:g} s while {others} others ask, list, search and upload every two seconds. He has his share of open "
        "requests (64); more get 429, and nobody else is refused."
    )
    return Report(about, lines, is_sound and not failed)


def try_people(*, count: int = PEOPLE, seconds: float = PEOPLE_S, pause_s: float = 10.0) -> Report:
    replies = Replies()
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        web, model = stack.enter_context(running_world(folder))
        database = Database(server.url).open()
        stack.callback(database.close)
        everybody = People(database)
        tokens = [everybody.add_token(everybody.add(f"Person {n}"), "trial") for n in range(count + 1)]
        processes = TeamProcesses(server.url, folder, web, model)
        stack.callback(processes.stop)
        base = processes.start_server()
        processes.start_worker()
        processes.start_worker()
        pid = processes.servers[base].pid
        fresh = memory_mb(pid)

        async def act_alone() -> None:
            member = Member(count, tokens[count], base, Replies())
            for name in ("upload", *REQUESTS):
                await member.act(name)

        asyncio.run(act_alone())
        one = memory_mb(pid)
        samples: list[float] = []

        async def work_together() -> None:
            async def watch() -> None:
                while True:
                    samples.append(memory_mb(pid))
                    await asyncio.sleep(2)

            watching = asyncio.create_task(watch())
            members = [Member(n, tokens[n], base, replies) for n in range(count)]
            await asyncio.gather(*(member.work(seconds, pause_s) for member in members))
            watching.cancel()

        asyncio.run(work_together())
        workers_mb = processes.memory_mb()["workers"]
        end = time.monotonic() + 120
        while database.fetch("select count(*) from runs where state in ('waiting', 'running')")[0][0]:
            assert time.monotonic() < end
            time.sleep(0.5)
        states: dict[str, int] = dict(database.fetch("select state, count(*) from runs group by state"))
        time.sleep(IDLE_S)
        afterwards = memory_mb(pid)
    each = (max(samples) - one) / count
    lines = [
        "| request | count | p50 ms | p95 ms | p99 ms | max ms |",
        "|---|---|---|---|---|---|",
        *(replies.row(name) for name in REQUESTS),
        "",
        "| memory of the server | MB |",
        "|---|---|",
        f"| fresh | {fresh:.0f} |",
        f"| after one person, with the embedding model loaded | {one:.0f} |",
        f"| with {count} people, at most | {max(samples):.0f} |",
        f"| for each active person | {each:.2f} |",
        f"| {IDLE_S:g} s after the last request | {afterwards:.0f} |",
        f"| of a worker at the end | {workers_mb:.0f} |",
        "",
        f"Refused or failed requests: {render_counts(replies.refused) or 'none'}. Runs: "
        + f"{', '.join(f'{n} {state}' for state, n in sorted(states.items()))}.",
    ]
    about = (
        f"{count} people for {seconds / 60:g} minutes at one server with two workers. Each uploads a small file, then does "
        f"something every {pause_s:g} s on average: asks (1 in 12), looks at a run, lists runs, opens the history, searches "
        f"the knowledge base. Allowed: {MAX_MB_PER_PERSON:g} MB for each active person."
    )
    is_sound = each <= MAX_MB_PER_PERSON and not replies.refused and set(states) == {"finished"}
    return Report(about, lines, is_sound)
