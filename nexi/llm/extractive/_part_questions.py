"""What one part of a question asks for: a thing to be explained, steps, and in a manual nothing that goes without saying.

Below `report`. Pure; general English, no subject and no site.
"""

from __future__ import annotations

import re

from msgspec import Struct

from nexi.llm.extractive._choice import find_defined
from nexi.llm.extractive.passages import ContentWords
from nexi.text.parts import asks_about_one

# Where something is, or what it is of: "triggers in SQLite", "indexes (PostgreSQL)". A manual does not repeat its own name.
_OWN_NAME = r"(?:(?:an?|the) )?[A-Z][\w.+#’'-]*(?: [A-Z][\w.+#’'-]*)*"
_KIND = r"(?: (?:programs?|scripts?|applications?|projects?|databases?|repositor(?:y|ies)|systems?|servers?))?"
_CONTEXT = re.compile(
    rf"\s*\({_OWN_NAME}(?: [a-z]+)*\)(?=[?.]*$)"
    rf"|\s+(?:in|on|for|under) {_OWN_NAME}{_KIND}(?= (?:and|or|is|are|was|were)\b|[?.,]|$)"
)
_ARTICLE = r"(?:(?:an?|the) )?"
_THING = re.compile(
    rf"^\W*(?:(?:what|who)(?:['’]s| is| was| are| were) {_ARTICLE}(?P<thing>[^?]+?)"
    rf"|what does {_ARTICLE}(?P<doer>[^?]+?) do|how (?:(?:do|does) )?{_ARTICLE}(?P<worker>[^?]+?) works?"
    rf"|what {_ARTICLE}(?P<clause>[^?]+?) (?:is|are)"
    rf"|(?:(?:explain|describe|define) )?{_ARTICLE}(?P<topic>[^?]+?))\W*$",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"\b(?:what|who|how|why|when|where|which|whose|of|for|to|from|by|on|at|with|after|before|between|about|and|or|not|it|this|"
    r"that|there|your?|my|used|called)\b",
    re.IGNORECASE,
)
_STEPS = re.compile(r"^\W*how (?:do|can|to|does one|would|should|is|are|an?|the)\b(?!.* (?:works?|differs?)\b)", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"\b(?:described|listed|shown|discussed|explained|given|covered|documented|summari[sz]ed|illustrate[sd]?|found)\b[^.]{0,30}"
    r"\b(?:in|by) (?:(?:the )?(?:next|following|previous)|(?:Section|Chapter|Table|Figure|Part|Appendix|Example)\b)"
    r"|^(?:Example|Table|Figure) \S+ |\b[Ss]ee (?:also )?(?:(?:the )?[Ss]ection|Chapter|Table|the chapter)\b"
)
_POINTER = re.compile(
    r"^\W*(?:See|Refer to|(?:Read|Consult) the [\w ]+ (?:section|chapter|documentation)"
    r"|For (?:more|further|additional|details?)\b[^.]*\bsee)\b",
    re.IGNORECASE,
)


_NOT_HERE = re.compile(
    r"\b(?:[Aa]s (?:shown|described|explained|discussed|mentioned|noted|seen|defined)|[Ss]ee|examples?|sections?|quer(?:y|ies)|"
    r"tables?|lists?|commands?|steps|code|functions?) (?:above|below)\b(?! the\b)|\b[Tt]he above\b|^\W*Notice (?:how|that)\b|"
    r"\b(?:the|this) (?:previous|preceding) (?:section|chapter|example|paragraph|query|table)\b|^\W*As you can see\b"
)


class PartQuestion(Struct, frozen=True):
    """A part as a manual may be asked, the stems of the thing that it wants explained, and whether it wants steps."""

    text: str
    thing: frozenset[str]
    wants_steps: bool


def read_part(part: str, words: ContentWords) -> PartQuestion:
    text = part if asks_about_one(part) else _CONTEXT.sub("", part)
    text = text if words.stems(text) else part
    match = _THING.match(text)
    thing = next(filter(None, match.groups()), "") if match else ""
    stems = frozenset(words.stems(thing)) if not _RELATION.search(thing) else frozenset()
    return PartQuestion(text, stems, _STEPS.match(text) is not None)


def defines_thing(asked: PartQuestion, text: str, familiar_stems: frozenset[str], words: ContentWords) -> bool:
    """Whether a text says what the thing is that is asked about: it begins with it, and with no word that is not familiar."""
    subject = frozenset(words.stems(find_defined(text)))
    return bool(asked.thing) and asked.thing <= subject <= asked.thing | familiar_stems


def points_elsewhere(text: str) -> bool:
    """Whether a sentence says where something is told, and seldom what."""
    return _ELSEWHERE.search(text) is not None or is_pointer(text)


def needs_neighbours(text: str) -> bool:
    """Whether a sentence can only be read beside what stands above or below it: "the query above", or a question."""
    return text.endswith("?") or _NOT_HERE.search(text) is not None


def is_pointer(text: str) -> bool:
    """Whether a sentence says nothing but where to read on."""
    return _POINTER.match(text) is not None
