"""An answer from passages that a search of the knowledge store has found in manuals and other pages about code.

Beside `composition`, below the built-in model. The store has ranked the passages by words and by meaning; here each is read
for the stretch that says most of the question, and the best few are quoted. On pages about code this answers more questions
than the best sentence of whole pages, because a how-to is a passage: a name, what it does, and a line of code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from urllib.parse import unquote

from msgspec import Struct

from nexi.llm.extractive._limits import MAX_ALTERNATIVES, MAX_HEAD_WORDS, MAX_PAGES_READ, MAX_WORDS, MIN_SENTENCE_WORDS
from nexi.llm.extractive._weights import find_similarity
from nexi.llm.extractive.passages import ContentWords, PassageSentence, is_about_code, read_sentences
from nexi.llm.extractive.questions import Question
from nexi.text.chunking import PASSAGE_GAP, LongText, heading_path
from nexi.types import Hit, PageView

_NAME_IN_CODE = re.compile(r"^[`@-]|\w\(")
_TITLE_END = re.compile(r"\s+[-–—|·]\s+")
_CHAPTER = re.compile(r"^(?:Appendix|Chapter|Part|Section)\s+[\w.]+?[.:]?\s+")
_SENTENCE_END = re.compile(r"[.!?:](?:\s|$)")  # the check would take what comes before it for a claim
_SECTION_NUMBER = re.compile(r"^(?:\(?\d+[.)])+(?:\d+\.?)*\s+")


class FoundPassage(Struct, frozen=True):
    """The stretch of a passage that says most of a question: sentences `first` to `last`, the latter not included."""

    score: float
    url: str
    title: str
    text: str
    sentences: tuple[PassageSentence, ...]
    first: int
    last: int


def find_passages(question: Question, hits: Sequence[Hit], pages: Sequence[PageView] = ()) -> list[FoundPassage]:
    """The passages of stored pages about code, the best first; none where the pages are about something else."""
    # Of the pages that were read, passages are added that the search did not return.
    texts = {page.url: page.text for page in pages}
    read: list[tuple[int, Hit, str, tuple[PassageSentence, ...]]] = []
    for place, hit in enumerate(hits):
        long = LongText(texts.get(hit.url, ""))
        best = [long.chunks[number] for number, _ in long.rank_chunks(question.text)[:MAX_ALTERNATIVES]]
        chunks = [chunk for chunk in best if chunk.text not in hit.snippet]
        others = [f"# {heading_path(c.headings)}\n\n{c.text}" if c.headings else c.text for c in chunks]
        read += [(place, hit, passage, read_sentences(passage)) for passage in (*hit.snippet.split(PASSAGE_GAP), *others)]
    every = [sentence for *_, sentences in read for sentence in sentences]
    if question.language or not is_about_code(every):
        return []
    words = ContentWords()
    found_passages = [_rate_passage(question.word_shares, words, *passage) for passage in read if passage[-1]]
    return sorted(found_passages, key=lambda passage: -passage.score)


def _rate_passage(
    weights: Mapping[str, float], words: ContentWords, place: int, hit: Hit, text: str, sentences: tuple[PassageSentence, ...]
) -> FoundPassage:
    """A passage by its best stretch and by its best sentence."""
    similarities = [
        {stem: find_similarity(stem, own) for stem in weights} for own in (frozenset(words.stems(s.text)) for s in sentences)
    ]
    best, first, last = -1.0, 0, 0
    for start in range(len(sentences)):
        end, room = start, MAX_WORDS
        while end < len(sentences) and (end == start or len(sentences[end].text.split()) <= room):
            room -= len(sentences[end].text.split())
            end += 1
        cover = sum(weight * max(one[stem] for one in similarities[start:end]) for stem, weight in weights.items())
        if cover > best:
            best, first, last = cover, start, end
    sentence = max(sum(weight * one[stem] for stem, weight in weights.items()) for one in similarities)
    return FoundPassage(1 / (2 + 2 * place) + best + sentence, hit.url, hit.title, text, sentences, first, last)


def quote_passages(passages: Sequence[FoundPassage], pages: Sequence[PageView]) -> str:
    """The best passages of the pages that were read, each a paragraph with its code; "" where none was."""
    numbers = {page.url: page.number for page in pages}
    paragraphs: list[str] = []
    former_sentences: set[str] = set()
    for passage in passages:
        sentences = {sentence.text for sentence in passage.sentences[passage.first : passage.last] if sentence.kind != "label"}
        if len(paragraphs) < MAX_PAGES_READ and passage.url in numbers and not sentences <= former_sentences:
            paragraph = _render_stretch(passage, f" [{numbers[passage.url]}]")
            paragraphs += [paragraph] if paragraph else []
            former_sentences |= sentences if paragraph else set()
    return "\n\n".join(paragraphs)


def _render_stretch(passage: FoundPassage, mark: str) -> str:
    """The cited sentences of a stretch, the first of each heading with it, and its code in fences; "" without a sentence."""
    blocks: list[str] = []
    has_sentence, head, names = False, "", ""
    # The name that a title begins with, which a passage of a manual often has nowhere else; none where the title is long, or
    # the name of a file, which stands nowhere in it.
    name = _SECTION_NUMBER.sub("", _CHAPTER.sub("", _TITLE_END.split(passage.title)[0].strip("` ")))
    is_short = len(name.split()) <= MIN_SENTENCE_WORDS and not _SENTENCE_END.search(name)
    page = name if is_short and not unquote(passage.url).endswith(f"/{passage.title}") else ""
    for kind, group in groupby(passage.sentences[passage.first : passage.last], key=lambda s: s.kind):
        sentences = list(group)
        if kind == "label":
            options = [s.text for s in sentences if " > " not in s.text and _NAME_IN_CODE.search(s.text)]
            names = ", ".join(options)  # an option may have several
        elif kind == "code":
            blocks.append(fence_code([sentence.text for sentence in sentences], passage.text))
        else:
            texts = []
            for sentence in sentences:
                label = sentence.label.rpartition(" > ")[2]
                heading = _SECTION_NUMBER.sub("", names or label)
                is_new = bool(heading) and label != head and len(heading.split()) <= MAX_HEAD_WORDS
                named_page = page if not is_new or page.casefold() not in heading.casefold() else ""
                above = ", ".join(name for name in (named_page, heading if is_new else "") if name)
                text, page = f"{above}: {sentence.text}" if above else sentence.text, ""
                words = text.split()
                text = text if len(words) <= MAX_WORDS else f"{' '.join(words[:MAX_WORDS])} …"
                texts += [text + mark] if len(words) >= MIN_SENTENCE_WORDS else []
                head, names = label, ""
            blocks += [" ".join(texts)] if texts else []
            has_sentence = has_sentence or bool(texts)
    return "\n\n".join(blocks) if has_sentence else ""


def fence_code(lines: Sequence[str], text: str) -> str:
    """Lines of code as they stand in a passage, with their indentation."""
    originals = {line.strip(): line.rstrip() for line in reversed(text.splitlines())}
    fence = "````" if any("```" in line for line in lines) else "```"
    return "\n".join((fence, *(originals.get(line, line) for line in lines), fence))
