"""Papers among the sources of an answer: which were retracted, and which are versions of one work. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from nexi.types import Evidence, Paper, Proof, Source
from nexi.urls import find_doi

_ARXIV = re.compile(r"//(?:[\w-]+\.)?arxiv\.org/(?:abs|pdf|html)/(\d{4}\.\d{4,5}|[a-z.-]+/\d{7})", re.IGNORECASE)
_RETRACTED_TITLE = re.compile(r"\W*(?:RETRACTED|WITHDRAWN)(?: ARTICLE| PAPER| CHAPTER)?\W*[:\]]", re.IGNORECASE)
_CONCERN_TITLE = re.compile(r"EXPRESSION OF CONCERN: ")  # nexi's own mark; a title like "Expression of Concern: …" is a notice


def read_standing(source: Source) -> str:
    """ "retracted" or "concern" where the record of a paper says so, or its title, as that of a stored page does."""
    if source.imprint.paper and source.imprint.paper.standing:
        return source.imprint.paper.standing
    return read_title_standing(source.title)


def read_title_standing(title: str) -> str:
    """What publishers write before the title of a paper that they retracted, and nexi before that of one in doubt."""
    if _RETRACTED_TITLE.match(title):
        return "retracted"
    return "concern" if _CONCERN_TITLE.match(title) else ""


def mark_title(title: str, paper: Paper) -> str:
    """A title with the mark of its paper before it, once."""
    is_marked = not paper.mark or title.upper().startswith(paper.mark)
    return title if is_marked else f"{paper.mark}: {title}"


def mark_standing(proof: Proof, sources: Iterable[Source]) -> Proof:
    """The proof with the standing of the paper at each piece of evidence from it."""
    standings = {source.number: standing for source in sources if (standing := read_standing(source))}
    if not standings:
        return proof

    def mark(e: Evidence) -> Evidence:
        return replace(e, standing=standings[e.number]) if e.number in standings else e

    return Proof(tuple(replace(claim, evidence=tuple(map(mark, claim.evidence))) for claim in proof.claims))


def group_works(sources: Iterable[Source]) -> dict[int, int]:
    """For each source the lowest number among those of its work: a preprint and its published version are one."""
    works: list[tuple[set[str], list[int]]] = []
    for source in sorted(sources, key=lambda source: source.number):
        # Every DOI that a source is known by; a preprint of arXiv has one by its number.
        paper, arxiv = source.imprint.paper or Paper(), _ARXIV.search(source.url)
        dois = (paper.doi, *paper.versions, find_doi(source.url), f"10.48550/arxiv.{arxiv[1]}" if arxiv else "")
        names, numbers = {doi.lower() for doi in dois if doi}, [source.number]
        for work in [work for work in works if work[0] & names]:
            works.remove(work)
            names, numbers = names | work[0], work[1] + numbers
        works.append((names, numbers))
    return {number: min(numbers) for _, numbers in works for number in numbers}


def count_works(sources: Iterable[Source]) -> int:
    return len(set(group_works(sources).values()))


def list_preprints(paper: Paper) -> list[str]:
    """The addresses of the preprints of a paper, which anyone may read."""
    return [f"https://arxiv.org/pdf/{number}" for doi in paper.versions for number in [doi.partition("arxiv.")[2]] if number]
