"""How a chosen sentence is quoted: whole, under its name in a manual, with the list or the code that it introduces.

Below `composition`, above `evidence`. What is quoted stands on the page word for word; where the end of a long sentence is left
out, "…" says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from urllib.parse import unquote

from nexi.checking.conflicts import DIFFER
from nexi.llm.extractive._evidence import Scored, SentenceRanking, find_wanted_words, flatten_words
from nexi.llm.extractive._found import fence_code
from nexi.llm.extractive._lexicon import CLAUSE_WORDS, SECTIONS
from nexi.llm.extractive._limits import MAX_BLOCK_WORDS, MAX_HEAD_WORDS, MAX_LINE_WORDS, MAX_WORDS, MIN_SENTENCE_WORDS
from nexi.llm.extractive._stretches import NAME_LINE
from nexi.llm.extractive.passages import PassageSentence
from nexi.text.references import name_subject
from nexi.types import PageView

# A name in code, such as an option, a function or a variable.
IDENTIFIER = re.compile(r"^[`-]|\w\(|[a-z][_.][a-z]|^[a-z]+[-_][a-z]|^[A-Z_]{3,}$|[a-z][A-Z]")
_AGENCY = re.compile(r"^(?:[A-Z][^()\n]{0,60})?\([A-Z][\w. ]{1,20}\)\s*(?:[—–]|--?)\s+(?=\S)")
_BLOCK_KINDS = ("item", "row", "code")


def quote_sentence(evidence: SentenceRanking, s: Scored, quotations: Sequence[Scored] = ()) -> str:
    """The sentence, under the identifier it explains where one was asked for and none of `quotations` stands under it."""
    text = _AGENCY.sub("", _without_heading(s.sentence.text, evidence.pages[s.page], evidence.subjects[s.page]))
    if evidence.wants != "code" or any((o.page, o.sentence.label) == (s.page, s.sentence.label) for o in quotations):
        return text
    page = evidence.pages[s.page]
    heads = (s.sentence.label, "" if is_file_name(page.title, page.url) else evidence.subjects[s.page])
    # the name of something in code, rather than a heading in prose
    short = (h for h in heads if 0 < len(h.split()) <= MAX_HEAD_WORDS and h.lower() not in SECTIONS)
    head = next((h for h in short if IDENTIFIER.search(h)), "")
    return f"{head}: {text}" if head and flatten_words(head) not in flatten_words(text) else text


def quote_with_context(evidence: SentenceRanking, s: Scored, quotations: Sequence[Scored] = ()) -> list[str]:
    """A sentence with the list or the code that belongs to it, each item and each block of code a text of its own."""
    # What is asked for in one word gets no list that would make it long.
    own = quote_sentence(evidence, s, quotations)
    page = evidence.sentences[s.page]
    first, last = _find_block(evidence, s)
    lead = page[first - 1] if first else None
    texts = [own] if s.place < first else []
    if s.place >= first and lead and lead.kind in ("prose", "item") and (introduces(lead) or s.sentence.kind == "code"):
        texts = [lead.text]
    if page[first].kind == "code":
        block = [fence_code([line.text for line in page[first:last]], evidence.pages[s.page].text)]
    else:
        block = list(_list_items(page[first:last]))
    room = MAX_BLOCK_WORDS if evidence.question.form in ("list", "how", "topic") else MAX_WORDS
    return [*texts, *block] if texts and sum(len(text.split()) for text in (*texts, *block)) <= room else [own]


def quote_unit(evidence: SentenceRanking, unit: Scored, quotations: Sequence[Scored] = ()) -> list[str]:
    """The texts of a unit of a manual: its sentences, its items and its code, under the names that it stands under."""
    # The names are left out where one of `quotations` stands under them already.
    page = evidence.sentences[unit.page]
    first = unit.place + (page[unit.place].kind == "label" and unit.last > unit.place + 1)
    is_named = any((o.page, o.sentence.label) == (unit.page, unit.sentence.label) for o in quotations)
    names = "" if is_named else _find_names(page, first)
    texts: list[str] = []
    quotable = (sentence for sentence in page[first : unit.last] if sentence.kind != "head")
    for kind, group in groupby(quotable, key=lambda sentence: sentence.kind):
        sentences = list(group)
        if kind == "code":
            texts += [] if texts or not names else [f"{names}:"]
            texts.append(fence_code([line.text for line in sentences], evidence.pages[unit.page].text))
        else:
            texts += _list_items(sentences) if kind in ("item", "row") and len(sentences) > 1 else [s.text for s in sentences]
    speaks_alone = not IDENTIFIER.search(names) and len(texts[0].split()) >= MIN_SENTENCE_WORDS and texts[0][0].isupper()
    stands_alone = not quotations and not evidence.question.sets_side_by_side
    if stands_alone and page[first].kind == "label" and NAME_LINE.match(page[first].text):
        # The line that names a command says less than what its description begins with.
        prose = [s for s in page[first + 1 :] if s.kind == "prose" and len(s.text.split()) >= MIN_SENTENCE_WORDS]
        lead = [s.text for s in prose if s.block == prose[0].block and not introduces(s)]
        texts += lead if sum(len(text.split()) for text in lead) <= MAX_WORDS else lead[:1]
    if names and not speaks_alone and not texts[0].startswith("- ") and flatten_words(names) not in flatten_words(texts[0]):
        texts[0] = f"{names}: {texts[0]}"
    return texts


def _find_names(page: Sequence[PassageSentence], first: int) -> str:
    """The names that a sentence stands under, such as the two forms of one option; else its heading where that is short."""
    place = first - 1
    while place >= 0 and page[place].kind != "label":
        place -= 1
    names: list[str] = []
    while (
        place >= 0
        and page[place].kind == "label"
        and (not names or (names[0].startswith("-") and page[place].text.startswith("-")))
    ):
        names.insert(0, page[place].text.rstrip("¶:?. "))
        place -= 1
    is_shown = names and (IDENTIFIER.search(names[-1]) or len(names[-1].split()) <= MAX_HEAD_WORDS)
    return ", ".join(names) if is_shown and names[-1].lower() not in SECTIONS else ""


def _find_block(evidence: SentenceRanking, s: Scored) -> tuple[int, int]:
    """Where the list or the code of a sentence begins and ends: after it, or around it where it is a part of one."""
    page, place = evidence.sentences[s.page], s.place
    follows = page[place + 1].kind if place + 1 < len(page) else ""
    form = evidence.question.form
    first = place
    if s.sentence.kind == "code" or (s.sentence.kind == "item" and form == "list"):
        while first > 0 and page[first - 1].kind == s.sentence.kind:
            first -= 1
    elif (introduces(s.sentence) and follows in _BLOCK_KINDS) or (follows == "code" and form in ("how", "topic")):
        first = place + 1
    last = first
    while last < len(page) and page[last].kind == page[first].kind and first != place:
        last += 1
    return first, max(last, place + 1)


def introduces(sentence: PassageSentence) -> bool:
    return sentence.text.rstrip().endswith(":")


def _list_items(sentences: Sequence[PassageSentence]) -> Iterator[str]:
    for _, group in groupby(sentences, key=lambda sentence: sentence.block):
        parts = [sentence.text for sentence in group]
        whole = " ".join(parts)
        yield f"- {whole if len(whole.split()) <= MAX_LINE_WORDS else parts[0]}"


def join_quotations(lines: Sequence[tuple[str, int]]) -> str:
    """Quotations with their citation numbers as Markdown; code has none, since its sentence has."""
    out = ""
    for text, number in lines:
        is_code, is_item = text.startswith("```"), text.startswith("- ")
        after_block = out.rpartition("\n")[2].startswith(("- ", "```"))
        is_apart = is_code or text.startswith(DIFFER) or (after_block and not is_item)
        gap = "\n\n" if is_apart else "\n" if is_item else " "
        out += (gap if out else "") + (text if is_code else f"{text} [{number}]")
    return out


def shorten_sentence(text: str, evidence: SentenceRanking, room: int, *, keeps_asked: bool = True) -> str:
    """A sentence without its end where it is longer than `room` words; with `keeps_asked`, nothing asked for goes with it."""
    words = text.split()
    if len(words) <= room:
        return text
    answer_places = find_wanted_words(evidence, words)
    places = {stem: i for i, word in reversed(list(enumerate(words))) for stem in evidence.words.stems(word)}
    min_place = max((place for stem, place in places.items() if stem in evidence.rarity), default=0)
    if answer_places and not any(i <= min_place for i in answer_places):
        min_place = answer_places[0]
    ends = [
        i
        for i in range(max(min_place + 1 if keeps_asked else 0, room // 2), room)
        if words[i - 1][-1] in ",;)—–" or words[i].lower() in CLAUSE_WORDS or words[i][0] in "(—–"
    ]
    return f"{' '.join(words[: ends[-1]])} …" if ends else text


def fit_sentences(texts: Sequence[str], evidence: SentenceRanking, room: int) -> list[str]:
    """Sentences that belong together within `room` words."""
    # The first of two leads to the page of the second, which answers, so that it loses its end first.
    longest = max((len(text.split()) for text in texts), default=0)
    for count, keeps_asked in ((1, True), (1, False), (len(texts), True), (len(texts), False)):
        for limit in range(longest, MIN_SENTENCE_WORDS, -1):
            ends = [shorten_sentence(text, evidence, limit, keeps_asked=keeps_asked) for text in texts[:count]]
            out = [*ends, *texts[count:]]
            if sum(len(text.split()) for text in out) <= room:
                return out
    return list(texts)


def _without_heading(text: str, page: PageView, subject: str) -> str:
    """A sentence without the heading that was glued to its front: "Owl Owl is a bird" says Owl once."""
    if is_file_name(page.title, page.url) and (lead := name_subject("", page.text)):
        rest = text.removeprefix(f"{lead} ")
        return rest if rest[:1].isupper() or rest[:1] in '"“' else text
    at = text.find(f"{subject} {subject}") if subject else -1
    return text[at + len(subject) + 1 :] if at >= 0 else text


def is_file_name(title: str, url: str) -> bool:
    """Whether a page has no title but the name of its file."""
    return bool(title) and unquote(url).rpartition("/")[2] == title
