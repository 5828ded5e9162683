"""Follow-up questions without a model, from the pages that were read: what has a heading or a name there and not in the answer.

Above is `app.suggestions`, which has the pages; below is `text`. Pure. A question is whole and in the language of the one that
was asked; there is none in a language without forms below. No list of topics is known here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from msgspec import Struct

from nexi.text.blocks import parse_blocks, read_block
from nexi.text.languages import LANGUAGES, detect_language
from nexi.text.references import name_subject
from nexi.text.sentences import sentence_bounds
from nexi.text.terms import join_roots
from nexi.text.words import STOP, find_names, find_words, has_unspaced

MAX_QUESTIONS = 3
MAX_PAGE_CHARS = 100_000
MAX_TOPIC_WORDS, MAX_TOPIC_CHARS, MAX_SUBJECT_CHARS = 7, 60, 60
MIN_SECTION_CHARS = 80  # less is no answer to a question about it
MIN_REST_CHARS = 200
QUOTED_CHARS = 50  # of a sentence, by which its section is known
MAX_SENTENCE_CHARS = 1_000
MAX_NAME_WORDS = 4

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
# About a topic of the subject, about a name beside it, and about a page as a whole, by language.
FORMS: dict[str, tuple[str, str, str]] = {language: tuple(forms) for language, forms in _DATA["forms"].items()}
_WORDS = {name: frozenset(words) for name, words in _DATA["words"].items()}
_JOINING = ("", "of", "of the", "de", "von", "van", "and")  # within a name
_PREPOSITIONS = _WORDS["prepositions"]
_VERBS = _WORDS["verbs"]
_NUMBERING = re.compile(r"^(?:(?:chapter|section|part|step)\s+)?(?:\d+(?:\.\d+)*|[ivx]+|[a-z])[.):]\s+|^\d+(?:\.\d+)*\s+", re.I)
_SECTION_NUMBER = re.compile(r"\(\d\w?\)$")  # of a manual
_MARKUP = re.compile(r"\[edit\]|!?\[([^\]]*)\]\([^)]*\)|[*_`¶#]+")
_ODD = re.compile(r"[|/\\<>{}\[\]=@©→»:;!]|https?|\d{3,}|\.\w")
_CITATION = re.compile(r"\s*\[\d+\]")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_HOW_TO = re.compile(r"how to (?=\w)", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(?:the|a|an)\s+$", re.IGNORECASE)


class AnswerPage(Struct, frozen=True):
    """A page that was read for an answer."""

    title: str
    text: str


def make_follow_ups(question: str, answer: str, pages: Sequence[AnswerPage]) -> tuple[str, ...]:
    """At most three questions on what the pages say and the answer does not; `pages` has those that it cites first."""
    language = detect_language(question) or detect_language(answer) or "en"
    if language not in FORMS:
        return ()
    own = [AnswerPage(page.title, page.text[:MAX_PAGE_CHARS]) for page in pages if detect_language(page.text) == language]
    old_text = f"{question}\n{_CITATION.sub('', answer)}"
    # The first topic of each page, then the second of each, and so on.
    rows = zip_longest(*([(topic, page) for topic in _list_topics(page, old_text)] for page in own))
    topics = filter(None, chain.from_iterable(rows))
    about_topics = _unique(_ask_about_topic(topic, page, question, language) for topic, page in topics)
    about_names = _unique(_ask_about_names(own, old_text, question, language))
    titles = (_shorten_title(page) for page in own if len(page.text) - len(answer) >= MIN_REST_CHARS)
    about_rest = _unique(FORMS[language][2].format(title=title) for title in titles if title)
    same_question = " ".join(question.casefold().split())
    questions = _unique([*about_topics[:2], *about_names[:1], *about_topics[2:], *about_names[1:], *about_rest])
    return tuple(each for each in questions if each.casefold() != same_question)[:MAX_QUESTIONS]


def _list_topics(page: AnswerPage, old_text: str) -> list[str]:
    """The headings of a page that say something, have a text, and are not in the question or the answer."""
    sentences = (" ".join(sentence.split()) for sentence in _SENTENCE_END.split(old_text))
    quotes = [sentence[:QUOTED_CHARS] for sentence in sentences if len(sentence) >= QUOTED_CHARS // 2]
    old_roots = {*join_roots(old_text).split(), *join_roots(_name_page(page)).split()}
    topics = []
    headings = [block for block in parse_blocks(page.text) if block.kind == "heading"]
    ends = [*(heading.start for heading in headings[1:]), len(page.text)]
    for heading, end in zip(headings, ends, strict=False):
        words, section = _clean_heading(read_block(page.text, heading)), " ".join(page.text[heading.end : end].split())
        roots = frozenset(join_roots(words).split())
        is_new = heading.level > 1 and bool(roots) and not roots <= old_roots
        if words and is_new and len(section) >= MIN_SECTION_CHARS and not any(quote in section for quote in quotes):
            topics.append(words)
    return topics


def _clean_heading(heading: str) -> str:
    """A heading as words of a question; "" where it is none to ask about."""
    bare = " ".join(_MARKUP.sub(r"\1", heading).split())
    words = _NUMBERING.sub("", bare).strip(" .:-–—")
    parts = find_words(words.casefold())
    is_long = len(words) > MAX_TOPIC_CHARS or (len(parts) > MAX_TOPIC_WORDS and not has_unspaced(words))
    is_shouting = words.isupper() and len(words) > 1
    is_furniture = all(part in _WORDS["furniture"] or part.isdigit() for part in parts)
    if is_long or is_shouting or is_furniture or _ODD.search(words):
        return ""
    return "" if any(part in _WORDS["pronouns"] for part in parts) or not any(char.isalpha() for char in words) else words


def _ask_about_topic(topic: str, page: AnswerPage, question: str, language: str) -> str:
    form, about_name, _ = FORMS[language]
    subject = _name_subject(question, page, language)
    if topic.endswith(("?", "？", "؟")):
        return topic if len(find_words(topic)) > 3 or has_unspaced(topic) else ""
    if language != "en":
        return form.format(subject=subject, topic=topic) if subject else ""
    # Without the capitals of a title: a word is a name where the text writes it so within a sentence.
    names = frozenset(re.findall(r"[a-z,] ([A-Z][\w’'-]*)", page.text))
    names -= {word.capitalize() for word in _small_words(page.text)}
    words = " ".join(w if w in names or not w[1:].islower() else w.lower() for w in topic.split())
    content = [word for word in words.split() if word not in STOP]
    if subject and content and all(word[:1].isupper() and word[1:].islower() for word in content):
        return about_name.format(name=words, subject=subject)
    return _ask_in_english(words, subject, _shorten_title(page))


def _ask_in_english(words: str, subject: str, title: str) -> str:
    """A question by what a heading begins with: an instruction, an activity, a place or a time, or a thing."""
    first, second = words.split()[0].casefold(), words.split()[1:2]
    has_object = bool(second) and (second[0].casefold() in _WORDS["object_openers"] or second[0][:1].isupper())
    if _HOW_TO.match(words):
        return f"How do you {_HOW_TO.sub('', words, 1)}?"
    if has_object and first in _VERBS:
        return f"How do you {words}?"
    base = first.removesuffix("ing")
    is_activity = bool({base, f"{base}e", base[:-1]} & _VERBS)  # made from a verb of instructions: using, setting
    if first.endswith("ing") and (has_object or is_activity):
        return f"How does {words} work?" if has_object else ""
    if first in ("what", "how"):
        return f"{words[0].upper()}{words[1:]}?" if second in (["is"], ["are"], ["does"], ["do"]) else ""
    if first in _WORDS["other_openers"]:
        return ""
    if not subject:
        return f"What does “{title}” say about {words}?" if title and first not in _PREPOSITIONS else ""
    if first in _PREPOSITIONS:
        return f"What is known about {subject} {words}?"
    has_subject = bool(frozenset(join_roots(subject).split()) & frozenset(join_roots(words).split()))
    if has_subject or "," in words or all(word.isupper() for word in words.split() if word not in STOP):
        return f"What is there to know about “{words}”?"
    return FORMS["en"][0].format(topic=words.removeprefix("the "), subject=subject)


def _small_words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\b[a-z][a-z’'-]*\b", text))


def _name_subject(question: str, page: AnswerPage, language: str) -> str:
    """What is asked about, in the words of the question where the title of the page has them, else by that title."""
    title = _name_page(page)
    if language == "en":
        if span := _find_span(question, frozenset(join_roots(title).split())):
            # With the capitals of the title, where the text never writes the words small.
            small, spellings = _small_words(page.text), {word.casefold(): word for word in title.split()}
            return " ".join(word if word in small else spellings.get(word, word) for word in span.split())
        if names := find_names(question):
            return _with_article(question, names[0])
        return ""
    names = [name for name in find_names(question) if language != "de" or " " in name]
    return title or next(iter(names), "")


def _find_span(question: str, roots: frozenset[str]) -> str:
    """The longest run of words of a question that a title has, with the article before them."""
    spans: list[tuple[int, int]] = []
    for match in re.finditer(r"[\w’'-]+", question):
        word = match[0].casefold()
        if word in STOP or word in _VERBS or not roots.intersection(join_roots(word).split()):
            continue
        start, end = spans[-1] if spans else (0, 0)
        if spans and question[end : match.start()].strip(" -").casefold() in _JOINING:
            spans[-1] = (start, match.end())
        else:
            spans.append(match.span())
    if not spans:
        return ""
    start, end = max(spans, key=lambda span: span[1] - span[0])
    return _with_article(question, question[start:end])


def _with_article(question: str, words: str) -> str:
    """The words with the article before them, unless that belongs to a word after them."""
    start = question.find(words)
    before, after = _ARTICLE.search(question[:start]), find_words(question[start + len(words) :])[:1]
    return f"{before[0].strip().lower()} {words}" if before and all(word.casefold() in STOP for word in after) else words


def _name_page(page: AnswerPage) -> str:
    title = _SECTION_NUMBER.sub("", _NUMBERING.sub("", name_subject(page.title, page.text)))
    return title if len(title) <= MAX_SUBJECT_CHARS else ""


def _ask_about_names(pages: Sequence[AnswerPage], old_text: str, question: str, language: str) -> Iterator[str]:
    """Questions about names that neither the question nor the answer has a part of, and that the page is not about."""
    old_text = old_text.casefold()
    stop = STOP | LANGUAGES[language].stop if language in LANGUAGES else STOP
    for page in pages:
        subject = _name_subject(question, page, language) or _name_page(page)
        small = _small_words(page.text)
        mentions = Counter[str]()
        for line in (read_block(page.text, block) for block in parse_blocks(page.text) if block.kind == "prose"):
            for start, end in sentence_bounds(line, MAX_SENTENCE_CHARS):
                mentions.update(find_names(line[start:end]))
        for name, _ in mentions.most_common():
            parts = [part for part in name.casefold().split() if part not in STOP]
            is_old = any(part in old_text for part in parts) or name.casefold() in page.title.casefold()
            # several words with capitals, one of which the text never writes small: one word alone may be anything
            words = [word for word in name.split() if word.casefold() not in stop]
            is_joined = {word.lower() for word in name.split() if word.casefold() in stop} <= set(_JOINING)
            is_name = all(word[:1].isupper() and word[1:].isalpha() and word[1:].islower() for word in words)
            is_new = not is_old and any(word.lower() not in small for word in words)
            if subject and is_joined and is_name and is_new and 1 < len(words) <= MAX_NAME_WORDS:
                yield FORMS[language][1].format(name=name, subject=subject)


def _shorten_title(page: AnswerPage) -> str:
    title = " ".join(page.title.split())
    return title if len(title) <= MAX_SUBJECT_CHARS else _name_page(page)


def _unique(questions: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(question for question in questions if question))
