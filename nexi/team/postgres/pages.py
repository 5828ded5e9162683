"""Page texts in Postgres by content hash, kept once for everybody. `runs` hands this out as the port PageStore."""

from __future__ import annotations

from functools import partial

from nexi.team.limits import MAX_RETRY_S
from nexi.team.postgres.database import Database, clean_text
from nexi.types import content_digest


class PostgresPages:
    """Texts by content hash, each kept once; who has read one is in `page_owners`, and which runs name it in `run_pages`."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner

    async def put(self, text: str) -> str:
        digest, body = content_digest(text), text.encode("utf-8", "surrogatepass")
        await self._database.in_thread(
            partial(self._database.fetch, patience_s=MAX_RETRY_S),
            "with kept as (insert into pages (digest, body) values (%(digest)s, %(body)s) "
            "on conflict (digest) do update set used = now() returning digest) "
            "insert into page_owners (digest, owner, bytes) "
            "select digest, %(owner)s, %(size)s from kept on conflict do nothing",
            {"digest": digest, "body": body, "owner": self._owner, "size": len(body)},
        )
        return digest

    async def get(self, digest: str) -> str | None:
        """The text, or None when it is absent or no longer what its name says."""
        sql, values = "select body from pages where digest = %(digest)s", {"digest": clean_text(digest)}
        rows = await self._database.in_thread(self._database.fetch_as, self._owner, sql, values)
        text = bytes(rows[0][0]).decode("utf-8", "surrogatepass") if rows else None
        return text if text is not None and content_digest(text) == digest else None
