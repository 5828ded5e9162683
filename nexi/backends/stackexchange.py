"""The Stack Exchange network's search: works without a key, with one a day's quota is larger. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct

from nexi.backends.replies import check_status, json_object, plain_line, read_rows
from nexi.backends.sender import BackendRequest
from nexi.errors import BackendError
from nexi.types import Hit, Query

NAME = "stackexchange"


class StackExchange(Struct, frozen=True):
    """The dialect of one site; a site among the query's sites that belongs to the network is asked instead."""

    api_key: str = ""
    timeout_s: float = 10.0
    site: str = "stackoverflow"
    base_url: str = "https://api.stackexchange.com/2.3"
    name: str = NAME
    filters = frozenset[str]()

    def request(self, query: Query) -> BackendRequest:
        params = {
            "q": query.text.strip()[:240],
            "site": _site_for(query.sites) or self.site,
            "order": "desc",
            "sort": "relevance",
            "pagesize": str(max(1, min(query.count, 50))),
            "filter": "withbody",
        }
        if self.api_key:
            params["key"] = self.api_key
        return BackendRequest(url=f"{self.base_url}/search/advanced", params=tuple(params.items()), timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        if status == 400 and b"throttle_violation" in body:
            raise BackendError(
                "Stack Exchange limits how often it may be asked",
                code="rate_limit",
                cause="its quota for this address or key is used up",
                fix="set STACKEXCHANGE_API_KEY, or wait",
            )
        check_status("Stack Exchange", status, headers, body)
        items = read_rows(json_object("Stack Exchange", body).get("items"))
        return [_parse_hit(item) for item in items if isinstance(item.get("link"), str) and item["link"]]


def _site_for(sites: tuple[str, ...]) -> str:
    for site in sites:
        name = site.removeprefix("www.")
        if name.endswith(".stackexchange.com"):
            return name.removesuffix(".stackexchange.com")
        if name in ("stackoverflow.com", "superuser.com", "serverfault.com", "askubuntu.com", "mathoverflow.net"):
            return name.removesuffix(".com")
    return ""


def _parse_hit(item: Mapping[str, object]) -> Hit:
    answered = f"{item.get('answer_count', 0)} answers, score {item.get('score', 0)}. "
    created = item.get("creation_date")
    published = datetime.fromtimestamp(created, UTC).date().isoformat() if isinstance(created, int) else ""
    return Hit(
        str(item["link"]), plain_line(item.get("title")), (answered + plain_line(item.get("body")))[:500], published, NAME
    )
