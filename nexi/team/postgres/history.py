"""Past answers in Postgres, as the port HistoryStore: one row for each, with its owner."""

from __future__ import annotations

import json
from typing import Any

from nexi.team.limits import MAX_RETRY_S
from nexi.team.postgres.database import MAX_ROWS, clean_text
from nexi.team.postgres.people import PersonalRows
from nexi.types import HistoryEntry, HistoryRead


class PostgresHistory(PersonalRows):
    """The past answers of one person."""

    def add(self, entry: HistoryEntry) -> None:
        words = f"{entry.query}\n{entry.answer}".casefold()
        self._fetch(
            "with before as (delete from history where owner = %(owner)s and id = %(id)s) "  # of a lost worker
            "insert into history (owner, id, entry, words) values (%(owner)s, %(id)s, %(entry)s, %(words)s)",
            id=entry.id,
            entry=json.dumps(entry.to_dict()),
            words=clean_text(words),
            patience_s=MAX_RETRY_S,
        )

    def read(self, count: int | None = None) -> HistoryRead:
        limit = None if count is None else max(0, count)
        return self._read("select entry from history where owner = %(owner)s order by number desc limit %(limit)s", limit=limit)

    def find(self, text: str, count: int | None = None) -> HistoryRead:
        words = clean_text(" ".join(text.casefold().split()))
        return self._read("select find_history(%(text)s, %(count)s)", text=words, count=MAX_ROWS if count is None else count)

    def get(self, entry_id: str) -> HistoryEntry | None:
        sql = "select entry from history where owner = %(owner)s and id = %(id)s order by number desc limit 1"
        history = self._read(sql, id=clean_text(entry_id))
        return history.entries[0] if history.entries else None

    def remove(self, entry_id: str) -> int:
        sql = "delete from history where owner = %(owner)s and id = %(id)s returning 1"
        return len(self._fetch(sql, id=clean_text(entry_id)))

    def clear(self) -> None:
        self._fetch("delete from history where owner = %(owner)s")

    def _read(self, statement: str, **values: Any) -> HistoryRead:
        return HistoryRead([HistoryEntry.from_dict(json.loads(entry)) for (entry,) in self._fetch(statement, **values)])
