"""Logs: one JSON object a line on stderr, with no key in it whatever was logged.

Every logger of the process ends here: ours, and the web server's. Questions are logged by `hosting`, at debug.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TextIO

_OWN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class _JsonLines(logging.Formatter):
    """A record as a JSON object; what the record was given beside its message become fields. Secrets are struck out."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = sorted({s for s in secrets if s}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "t": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _OWN},
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        line = json.dumps(fields, ensure_ascii=False, default=str)
        for secret in self._secrets:
            line = line.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "***").replace(secret, "***")
        return line.encode("utf-8", "backslashreplace").decode("utf-8")  # half of a character breaks no line


def configure_logging(level: str, secrets: Iterable[str], stream: TextIO | None = None) -> None:
    """Send every log of this process to stderr in this form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines(secrets))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("nexi").setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, getattr(logging, level.upper())))
