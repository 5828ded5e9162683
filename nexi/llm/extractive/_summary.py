"""What the built-in model says of a prompt without tools: the sentences in it that bear on the question in it.

Above `evidence`, below the model. Reads a prompt as any model would: a line that names the question, and the long part that
is the material. Citation numbers of the material stay beside what they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from nexi.llm.extractive._evidence import SentenceRanking
from nexi.llm.extractive._limits import MAX_BLOCK_WORDS, MAX_CANDIDATES, MAX_SECTION_WORDS, MIN_SUMMARY_WORDS
from nexi.llm.extractive.passages import ContentWords, read_sentences
from nexi.llm.extractive.questions import Question, read_question
from nexi.text.whole import asks_about_whole
from nexi.types import PageView

_ASKED = re.compile(r"^[^\w\n]*(?:\w+ )?(?:question|query|task|topic)\W*:\s*(\S.*)$", re.I | re.M)
_BETWEEN = re.compile(r"^---\s*\n(.*)\n---\s*$", re.S | re.M)
_PAGE = re.compile(r"^\[(\d{1,4})\] (\S+)\n---\n", re.M)
_PART = re.compile(r"^\[(?:[a-z]+ )?(\d{1,4})\]\s*$", re.I | re.M)


def summarise_text(instructions: Sequence[str], prompts: Sequence[str], max_tokens: int) -> str:
    """The best sentences of the longest text given, in their order, within `max_tokens`."""
    # What a system message says is never material, unless it is all there is.
    texts = [*instructions, *prompts]
    material = max(prompts or instructions, key=len, default="")
    if len(prompts or instructions) == 1 and (between := _BETWEEN.search(material)):
        material = between[1]
    evidence = SentenceRanking(_asked_in(texts), page_views(material) or [PageView("", text=material)])
    room = max(1, min(MAX_SECTION_WORDS, max_tokens // 2))
    best, word_count = [], 0
    for candidate in evidence.ranked:
        length = len(candidate.sentence.text.split())
        if candidate.sentence.kind != "label" and word_count + length <= room:
            best.append(candidate)
            word_count += length
    lines = [(evidence.pages[s.page].number, s.sentence.text) for s in sorted(best, key=lambda s: (s.page, s.place))]
    if summary := "\n".join(f"{text} [{n}]" if n else text for n, text in lines):
        return summary
    words = " ".join(s.text for page in evidence.sentences for s in page[:MAX_CANDIDATES] if s.kind != "label").split()
    return " ".join(words[: min(room, MAX_BLOCK_WORDS)])


def is_about_pages(question: str, pages: Sequence[PageView]) -> bool:
    """Whether a question is about pages as a whole that came with it: files, pages that it names, or what was written."""
    return asks_about_whole(question) and all(not p.url or p.url.startswith("file:") or p.url in question for p in pages)


def summarise_pages(pages: Sequence[PageView]) -> list[tuple[str, int]]:
    """What pages say, in sentences of their own: the first of each section, then the second ones, in the order of the page."""
    lines: list[tuple[str, int]] = []
    for page in pages:
        sections: dict[str, list[tuple[int, str]]] = {}
        for place, sentence in enumerate(read_sentences(page.text)):
            if sentence.kind in ("prose", "item") and len(sentence.text.split()) >= MIN_SUMMARY_WORDS:
                sections.setdefault(sentence.label, []).append((place, sentence.text))
        room, own = MAX_SECTION_WORDS // 2 // len(pages), list[tuple[int, str]]()
        for place, text in (s for rank in zip_longest(*sections.values()) for s in rank if s):
            room -= len(text.split())
            if own and room < 0:
                break
            own.append((place, text))
        lines += [(text, page.number) for _, text in sorted(own)]
    return lines


def pick_parts(texts: Sequence[str], count: int) -> list[int]:
    """The numbers of the numbered parts of a prompt that share most with its question, best first."""
    heads = [(text, m) for text in texts for m in _PART.finditer(text)]
    question, words = _asked_in(texts), ContentWords()
    scores = {}
    for index, (text, head) in enumerate(heads):
        follows = index + 1 < len(heads) and heads[index + 1][0] is text
        body = text[head.end() : heads[index + 1][1].start() if follows else len(text)]
        stems = set(words.stems(body))
        scores[int(head[1])] = sum(w for s, w in question.weights.items() if s in stems)
    numbers = sorted((n for n, score in scores.items() if score > 0), key=lambda n: (-scores[n], n))
    return (numbers or sorted(scores))[:count]


def page_views(text: str) -> list[PageView]:
    """Pages as every model is given them: `[n] url`, a rule, the text."""
    heads = list(_PAGE.finditer(text))
    starts = [h.start() for h in heads[1:]] + [len(text)]
    return [PageView(h[2], int(h[1]), "", text[h.end() : end]) for h, end in zip(heads, starts, strict=False)]


def _asked_in(texts: Sequence[str]) -> Question:
    """The question a prompt names, or its first words."""
    for text in texts:
        if match := _ASKED.search(text):
            return read_question(match[1])
    return read_question(next((t for t in texts if t.strip()), ""))
