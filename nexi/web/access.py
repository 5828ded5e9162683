"""Access: who may do what at a server of one person that has no token of its own.

The owner is who sends the owner's token, or the cookie that a browser got for it. Everybody else on this machine is a guest,
who may ask questions and get what the web says; the rest is refused. A path that is not named here is the owner's. Above is
the guard, which asks `identify`; `guests` answers those who are let in without being known.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from nexi.app.owner_token import OwnerToken
from nexi.types import GUEST, Principal
from nexi.web.guard import given_token
from nexi.web.problems import build_refusal

GUEST_PATHS = (
    "GET /openapi.json",
    "POST /v1/runs",
    "* /v1/runs/?*",  # by an id that nobody can guess
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses",
    "* /v1/responses/?*",
    "POST /v1/embeddings",
    "GET /v1/models",
    "GET /v1/models/*",
    "POST /v1/search",
    "POST /v1/snippet_rank",
    "* /searxng",
    "* /searxng/*",
    "POST /tavily/*",
    "GET /tavily/research/*",
    "POST /openwebui/*",
)
OWNER_FIX = "open the link that nexi serve printed, or send what `nexi token` prints as `Authorization: Bearer TOKEN`"


class OwnerAccess:
    """Tells the owner from guests, and what is open to them."""

    def __init__(self, owner: OwnerToken, *, is_always_asked: bool = False) -> None:
        self.owner, self._is_always_asked = owner, is_always_asked

    async def identify(self, headers: Headers, scope: Scope) -> Principal:
        """Who asks; somebody with another key is a guest, since clients of other services send any word. Raises Refused."""
        if self.is_owner(headers):
            return Principal()
        if self.is_open_to_guests(scope["method"], scope["path"]):
            return GUEST
        message = "this is for the owner of the server, and the token is missing or wrong"
        raise build_refusal(401, "unauthorized", message, fix=OWNER_FIX)

    def is_owner(self, headers: Headers) -> bool:
        cookies = cookie_parser(headers.get("cookie", ""))
        return self.owner.is_token(given_token(headers)) or self.owner.is_cookie(cookies.get(cookie_name(headers), ""))

    def is_open_to_guests(self, method: str, path: str) -> bool:
        if self._is_always_asked:
            return False
        operation = f"{'GET' if method == 'HEAD' else method} {path}"
        return any(fnmatchcase(operation, pattern) for pattern in GUEST_PATHS)


def cookie_name(headers: Headers) -> str:
    """The name of the owner's cookie. It has the port, since all servers of a host see and set the same cookies."""
    port = headers["host"].rpartition(":")[2]
    return f"nexi-owner-{port}" if port.isdigit() else "nexi-owner"
