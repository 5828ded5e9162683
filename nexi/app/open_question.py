"""What a question leaves open, found out before research is planned, so that a person can be asked back once.

A door without a person lets the run write about each reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nexi.app.request import RunRequest
from nexi.text.references import find_namesakes, find_open_reference
from nexi.text.words import find_names
from nexi.types import Hit, Message

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi

MAX_READINGS = 5
MAX_NAME_CHARS = 80
# Marks of code and markup, which a title may hold and a name does not.
_NO_NAME = re.compile(r"[<>{}\[\]|`=;\\]|&\w+;|://")


class OpenQuestion(Struct, frozen=True):
    """The things that a question may mean, or the kind of thing that it does not name; neither where it is clear."""

    readings: tuple[str, ...] = ()
    kind: str = ""

    def __bool__(self) -> bool:
        return bool(self.readings or self.kind)


async def find_open_question(nexi: Nexi, request: RunRequest, earlier: Sequence[Message] = ()) -> OpenQuestion:
    """What a question leaves open after those before it; nothing where a search fails, since the run says what failed. Raises
    QuestionError or ConfigError."""
    nexi.check_request(request)
    if kind := "" if request.attachments else find_open_reference(request.question, earlier):
        return OpenQuestion(kind=kind)
    if not find_names(request.question) or (request.is_local and request.space):
        return OpenQuestion()
    query = replace(request.query, text=request.question)
    outcome = await (nexi.find_known(query) if request.is_local else nexi.find(query))
    return OpenQuestion(_list_namesakes(request.question, outcome.hits))


def _list_namesakes(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """The things of one name that search results are about, in their order."""
    about = find_namesakes(question, [(hit.title, hit.snippet) for hit in hits])
    names = [name for name in dict.fromkeys(about.values()) if len(name) <= MAX_NAME_CHARS and not _NO_NAME.search(name)]
    return tuple(names[:MAX_READINGS]) if len(names) > 1 else ()
