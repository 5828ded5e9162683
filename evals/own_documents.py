"""Asks a question of a few documents and of nothing else, through the app, without a model.

Shared by the evals whose rows bring documents of their own: each document becomes a file, the files are indexed, and the
question has the scope `local`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.app.request import RunRequest
from nexi.config import Config
from nexi.errors import NexiError
from nexi.runs.session import Session
from nexi.types import Answer, Message


def ask_documents(files: Mapping[str, str], question: str, earlier: Sequence[tuple[str, str]] = ()) -> Answer | NexiError:
    """The answer from these files after the turns of a conversation, or the error where there is none."""

    async def go(folder: Path) -> Answer | NexiError:
        async with Nexi(Config(home=folder / "home", model="extractive")) as nexi:
            if files:
                indexing = DocumentIndexing(nexi, nexi.knowledge())
                await indexing.take(str(folder / "files"))
            roles = {"user": "user", "agent": "assistant"}
            session = Session(Message(roles[speaker], text) for speaker, text in earlier)  # type: ignore[arg-type]
            request = RunRequest(question, scope="local", keeps_log=False, keeps_history=False)
            try:
                return (await nexi.answer(request, session=session)).answer
            except NexiError as error:
                return error

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files.items():
            place = folder / "files" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        return asyncio.run(go(folder))
