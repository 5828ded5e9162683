"""The Stack Exchange network's search: works without a key, with one a day's quota is larger.

A search gives questions; the texts of their accepted answers are one more request, and where that fails the questions stand
alone. The dialect is pure; how requests are sent is the sender's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from nexi.backends.replies import check_status, json_object, plain_line, read_rows
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
        about = {
            "q": query.text.strip()[:240],
            "order": "desc",
            "sort": "relevance",
            "pagesize": str(max(1, min(query.count, 50))),
        }
        return self._build_request("/search/advanced", about, query)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        return [_parse_hit(item) for item in self._parse_items(status, headers, body) if _link_of(item)]

    def answers_request(self, query: Query, answer_ids: Mapping[str, int]) -> BackendRequest:
        """Ask for the texts of accepted answers; `answer_ids` has theirs by the link of the question."""
        ids = ";".join(str(answer) for answer in answer_ids.values())
        return self._build_request(f"/answers/{ids}", {"pagesize": str(len(answer_ids))}, query)

    def parse_answers(self, status: int, headers: Mapping[str, str], body: bytes) -> dict[int, str]:
        """The texts of answers by their id."""
        items = self._parse_items(status, headers, body)
        texts = {item.get("answer_id"): plain_line(item.get("body")) for item in items}
        return {answer: text for answer, text in texts.items() if isinstance(answer, int) and text}

    def _build_request(self, path: str, params: Mapping[str, str], query: Query) -> BackendRequest:
        key = {"key": self.api_key} if self.api_key else {}
        hosts = (site.removeprefix("www.") for site in query.sites)
        own = (host for host in hosts if host.endswith(".stackexchange.com") or host in OWN_HOSTS)
        site = next(own, "").removesuffix(".stackexchange.com").removesuffix(".com") or self.site
        params = {**params, "site": site, "filter": "withbody", **key}
        return BackendRequest(url=f"{self.base_url}{path}", params=tuple(params.items()), timeout_s=self.timeout_s)

    def _parse_items(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Mapping[str, object]]:
        if status == 400 and b"throttle_violation" in body:
            raise BackendError(
                "Stack Exchange limits how often it may be asked",
                code="rate_limit",
                cause="its quota for this address or key is used up",
                fix="set STACKEXCHANGE_API_KEY, or wait",
            )
        check_status("Stack Exchange", status, headers, body)
        return list(read_rows(json_object("Stack Exchange", body).get("items")))


class StackExchangeBackend(HttpBackend):
    """Questions with the texts of their accepted answers."""

    async def _ask_dialect(self, dialect: BackendDialect, query: Query) -> list[Hit]:
        assert isinstance(dialect, StackExchange)  # noqa: S101 - the only dialect it is built with
        reply = await self._sender.send(self.name, dialect.request(query))
        hits = dialect.parse(reply.status, reply.headers, reply.body)[: query.count]
        answer_ids = find_accepted(reply.body, hits)
        if not answer_ids:
            return hits
        try:
            reply = await self._sender.send(self.name, dialect.answers_request(query, answer_ids))
            texts = dialect.parse_answers(reply.status, reply.headers, reply.body)
        except BackendError:
            return hits
        return [
            replace(hit, snippet=f"{hit.snippet}\nAccepted answer: {text[:MAX_ANSWER_CHARS]}")
            if (text := texts.get(answer_ids.get(hit.url, 0)))
            else hit
            for hit in hits
        ]


def find_accepted(body: bytes, hits: list[Hit]) -> dict[str, int]:
    """The ids of the accepted answers of these hits, by link."""
    links = {hit.url for hit in hits}
    ids = {
        _link_of(item): item.get("accepted_answer_id") for item in read_rows(json_object("Stack Exchange", body).get("items"))
    }
    return {link: answer for link, answer in ids.items() if link in links and isinstance(answer, int)}


def _link_of(item: Mapping[str, object]) -> str:
    link = item.get("link")
    return link if isinstance(link, str) else ""


def _parse_hit(item: Mapping[str, object]) -> Hit:
    counts = f"{item.get('answer_count', 0)} answers, score {item.get('score', 0)}. "
    created = item.get("creation_date")
    day = datetime.fromtimestamp(created, UTC).date().isoformat() if isinstance(created, int) else ""
    question = (counts + plain_line(item.get("body")))[:MAX_QUESTION_CHARS]
    return Hit(str(item["link"]), plain_line(item.get("title")), question, day, NAME)
