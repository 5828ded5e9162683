"""What a question leaves open: several things of one name, or a thing that was never named. Pure; English for the latter.

Above are the built-in model and the check, which answer for each reading; below is `names`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.text.names import find_names

__all__ = ["find_namesakes", "find_open_reference", "name_subject"]

MAX_LEAD_CHARS = 200  # of a text in which it names its subject
_SITE = re.compile(r"\s+[-–—|·»]\s+")
# Kinds of things that have names of their own, so that "the library" without one may be any.
_KINDS = re.findall(
    r"\w+",
    """
    actor actress agency airline airport album animal artist author award band bank battle book bridge building car
    championship character church city clinic club college company conference contract council country county court
    department director disease district drug earthquake election event festival film firm game hospital hotel hurricane
    island king lake language law library magazine market medicine minister model mountain movie museum neighborhood
    novel ocean office organization park party plan planet player policy president prince product program programme
    project queen region religion restaurant river school season sdk series show singer song species stadium state
    station storm store street team test theory tournament town treaty trial tribe university vaccine village virus
    volcano war website writer
""",
)
_KIND = "|".join(sorted(_KINDS, key=len, reverse=True))
_OPEN = re.compile(
    rf"\b(?P<lead>this|these|those|the)\s+(?:[a-z][a-z-]+\s+){{0,2}}?(?P<kind>{_KIND})(?:['’]s|s['’]?)?\b(?=(?P<rest>[^?.!]*))",
    re.IGNORECASE,
)
_NAMED_BY = re.compile(
    r"\s*(?:of|in|for|by|from|at|on|called|named|that|which|who|where|to|with)\s+(?:the\s+)?[\"“A-Z\d]|\s+[\"“A-Z\d]|\s+of\s"
)
_OF_PEOPLE = re.compile(r"\w+(?:ish|ese|ian|an|ic|i)")  # an adjective: "Jewish" names no thing
_NAME_BEFORE = re.compile(r"[A-Z][\w'’-]*\s+$")


def find_namesakes(question: str, pages: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The pages, as title and text, that are about different things of one name in the question, each with what it is about.

    "Michael Jordan (footballer)" is one; so is "Michael Jordan" beside it. None where the question says which is meant.
    """
    for name in find_names(question):
        qualified = re.compile(rf"{re.escape(name)}\s*\(\s*([^()\d][^()]{{2,50}}?)\s*\)")
        plain = re.compile(rf"{re.escape(name)}\W*", re.IGNORECASE)
        about: dict[int, str] = {}
        for number, (title, text) in enumerate(pages):
            match = qualified.search(title) or qualified.match(text.lstrip("# \n")[:MAX_LEAD_CHARS])
            if match:
                about[number] = f"{name} ({' '.join(match[1].split())})"
            elif plain.fullmatch(name_subject(title)):
                about[number] = name
        words = {word for label in about.values() for word in re.findall(r"\w{3,}", label.removeprefix(name).lower())}
        if len(set(about.values())) > 1 and not words & set(re.findall(r"\w+", question.lower())):
            return about
    return {}


def name_subject(title: str) -> str:
    """What a page is about by its title, without the site that it is of."""
    return _SITE.split(title)[0].strip() or title


def find_open_reference(question: str, earlier: str = "") -> str:
    """The kind of thing that a question speaks of as known, but that neither it nor the conversation has named; "" for none.

    A question with the name of anything is not open: what it speaks of belongs to that.
    """
    if any(not _OF_PEOPLE.fullmatch(name) for name in find_names(question)):
        return ""
    before = earlier.lower()
    for match in _OPEN.finditer(question):
        kind = match["kind"].lower()
        is_named = _NAME_BEFORE.search(question[: match.start("kind")]) or (
            match["lead"].lower() == "the" and _NAMED_BY.match(match["rest"])
        )
        if not is_named and not re.search(rf"\b{kind.removesuffix('y')}(?:y|ies|s|es)?\b", before):
            return kind
    return ""
