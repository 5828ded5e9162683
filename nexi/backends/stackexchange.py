"""The Stack Exchange network's search: works without a key, with one a day's quota is larger.

A search gives questions; the texts of their accepted answers are one more request, and where that fails the questions stand
alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nexi.backends._replies import plain_line, read_answer, read_rows
from nexi.backends.sender import BackendDialect, BackendRequest, HttpBackend
from nexi.errors import BackendError
from nexi.types import Hit, Query

__all__ = ["StackExchange", "StackExchangeBackend"]

NAME = "stackexchange"
MAX_QUESTION_CHARS = 500
MAX_ANSWER_CHARS = 1_500
OWN_HOSTS = ("stackoverflow.com", "superuser.com", "serverfault.com", "askubuntu.com", "stackapps.com", "mathoverflow.net")


class StackExchange(Struct, frozen=True):
    """The dialect of one site; a site among the query's sites that belongs to the network is asked instead."""

    api_key: str = ""
    timeout_s: float = 10.0
    site: str = "stackoverflow"
    base_url: str = "https://api.stackexchange.com/2.3"
    name: str = NAME
    filters = frozenset[str]()

    def request(self, query: Query) -> BackendRequest:
        size = str(max(1, min(query.count, 50)))
        about = {"q": query.text.strip()[:240], "order": "desc", "sort": "relevance", "pagesize": size}
        return self.build_request("/search/advanced", about, query)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        return [_parse_hit(item) for item in self.parse_items(status, headers, body, "link")]

    def build_request(self, path: str, params: Mapping[str, str], query: Query) -> BackendRequest:
        key = {"key": self.api_key} if self.api_key else {}
        hosts = (site.removeprefix("www.") for site in query.sites)
        own = (host for host in hosts if host.endswith(".stackexchange.com") or host in OWN_HOSTS)
        site = next(own, "").removesuffix(".stackexchange.com").removesuffix(".com") or self.site
        params = {**params, "site": site, "filter": "withbody", **key}
        return BackendRequest(url=f"{self.base_url}{path}", params=tuple(params.items()), timeout_s=self.timeout_s)

    def parse_items(self, status: int, headers: Mapping[str, str], body: bytes, text_field: str = "") -> list[dict[str, Any]]:
        if status == 400 and b"throttle_violation" in body:
            message, fix = "Stack Exchange limits how often it may be asked", "set STACKEXCHANGE_API_KEY, or wait"
            raise BackendError(message, code="rate_limit", cause="its quota for this address or key is used up", fix=fix)
        return read_rows(read_answer("Stack Exchange", status, headers, body).get("items"), text_field)


class StackExchangeBackend(HttpBackend):
    """Questions with the texts of their accepted answers."""

    async def _ask_dialect(self, dialect: BackendDialect, query: Query) -> list[Hit]:
        assert isinstance(dialect, StackExchange)  # noqa: S101 - the only dialect it is built with
        reply = await self._sender.send(self.name, dialect.request(query))
        items = dialect.parse_items(reply.status, reply.headers, reply.body, "link")[: query.count]
        hits = [_parse_hit(item) for item in items]
        answers = [answer if isinstance(answer := item.get("accepted_answer_id"), int) else 0 for item in items]
        ids = [str(answer) for answer in answers if answer]
        if not ids:
            return hits
        try:
            request = dialect.build_request(f"/answers/{';'.join(ids)}", {"pagesize": str(len(ids))}, query)
            reply = await self._sender.send(self.name, request)
            answer_items = dialect.parse_items(reply.status, reply.headers, reply.body)
        except BackendError:
            return hits
        texts = {item.get("answer_id"): plain_line(item.get("body"))[:MAX_ANSWER_CHARS] for item in answer_items}
        for index, answer in enumerate(answers):
            if answer and (text := texts.get(answer)):
                hits[index] = replace(hits[index], snippet=f"{hits[index].snippet}\nAccepted answer: {text}")
        return hits


def _parse_hit(item: Mapping[str, object]) -> Hit:
    counts = f"{item.get('answer_count', 0)} answers, score {item.get('score', 0)}. "
    created = item.get("creation_date")
    day = datetime.fromtimestamp(created, UTC).date().isoformat() if isinstance(created, int) else ""
    question = (counts + plain_line(item.get("body")))[:MAX_QUESTION_CHARS]
    return Hit(str(item["link"]), plain_line(item.get("title")), question, day, NAME)
