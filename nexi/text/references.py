"""What a question leaves open: which of several things of one name is meant. Pure.

Above are the built-in model and the check, which answer for each reading; below is `names`. A thing that was never named is in
`open_references`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

from nexi.text.names import find_names
from nexi.text.open_references import find_open_reference
from nexi.text.scope import MAX_HEAD_CHARS
from nexi.text.stopwords import word_set
from nexi.text.words import find_words, has_words

MIN_KIND_CHARS = 4  # fewer are a preposition or an article
MAX_LEAD_CHARS = 200  # of a text in which it names its subject
MAX_MIDDLE = 2  # names between the first and the last one
MAX_KIND_WORDS = 8  # in which a text says of what kind its subject is
MAX_BEFORE = 3  # words of a longer name before the one that was asked for
_SITE = re.compile(r"\s+[-–—|·»]\s+")
_FILE = re.compile(r"^[^\s/]+\.[a-z\d]{1,5}$|^$", re.IGNORECASE)
_TITLE = r"[A-ZÀ-Þ\d\"“][^\n!?()]{1,80}?"
_QUALIFIED = re.compile(rf"(?P<subject>{_TITLE}\s?\(\s*[^()\n]{{2,60}}\))\s")
# A title that stands before its text on one line: "Osgood, Indiana Osgood is a town".
_STYLES = "Right|Hon(?:ou?rable)?|Sir|Lord|Lady|Dame|Saint|St|Dr|Rev(?:erend)?"
_REPEATED = re.compile(
    rf"(?P<subject>(?=(?P<first>(?:The )?(?!The\b)[\w.'’-]{{3,}})){_TITLE}[!?]?)\s+(?:(?:The|An?|{_STYLES})\s+)*(?P=first)\b"
)
_SENTENCE_END = re.compile(r"[a-z]{4}[.;]\s|\s[.;]\s")
_LISTS = re.compile(r"\((?:disambiguation|Begriffsklärung|homonymie|desambiguación)\)$", re.IGNORECASE)
_LIFE = re.compile(r"\s*\(\s*(?:c\. )?(?:born|\d{4}\s*[-–]|[A-Z][a-z]+ \d|\d+ [A-Z][a-z]+)[^()]*\)$")
_UNSETTLING = word_set("born died the was are which what when where who and for from")
_HONORIFICS = word_set(
    "judge justice king queen president senator sir lord lady doctor dr professor captain general attorney saint pope "
    "cardinal emperor empress prince princess bishop governor mayor minister chief mr mrs"
)
_IS = re.compile(r"\s(?:is|was|are|were)\s+(?:an?|the|one)\s")
_BORN = re.compile(r"\([^()]*(?:\bborn\b|\d{4})[^()]*\)")
_ARTICLE = re.compile(r"^(?:the|an?)\s+")
# What tells one of a series from the others: "Mahmud II", "Satellite 3", "2018 World Cup".
_ORDER = re.compile(r"\s+(?:[ivx]{1,4}|jr|sr|junior|senior|\d{1,2}|(?:19|20)\d\d)$|^(?:1[89]|20)\d\d\s+")


def find_parties(question: str, subject: str, text: str) -> tuple[str, ...]:
    """The names of the question in the first lines of a page whose subject has none of them."""
    # A contract names its parties once, and each of its sentences is about them.
    head = text[:MAX_HEAD_CHARS]
    names = [name for name in find_names(question) if len(name) > 1]
    return () if any(has_words(subject, name) for name in names) else tuple(name for name in names if has_words(head, name))


def find_namesakes(question: str, pages: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The pages about different things of one name in the question, each with what it is about; none where it says which."""
    # "Michael Jordan (footballer)" is one; so are "Michael Jordan" and "Michael B. Jordan", and "Osgood, Indiana" of Osgood.
    about = _tell_apart(question, pages)[0]
    return about if len(set(about.values())) > 1 else {}


def find_qualified(question: str, pages: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The pages whose subject has a name of the question and a bracket or comma that tells it apart; none where it is asked."""
    asked = _words(question) - _UNSETTLING
    for name in find_names(question):
        subjects = {number: name_subject(title, text) for number, (title, text) in enumerate(pages)}
        about = {n: s for n, s in subjects.items() if re.search(r"[(,]", s) and _has_name(s, name)}
        if about and not asked & frozenset[str]().union(*map(_words, about.values())) - _words(name):
            return about
    return {}


def find_other_things(question: str, pages: Sequence[tuple[str, str]]) -> frozenset[int]:
    """The pages that are about a thing of the same name as the one meant, where a word of the question tells them apart."""
    namesakes = _tell_apart(question, pages)[1]
    if re.search(r"\b(?:or|versus|vs)\b", question, re.IGNORECASE):
        return namesakes  # a question with a choice may use another name
    # Also those whose title has another name where that of the page meant has one: "City guide: Oslo" and "... Bergen".
    # Of two people who share a surname, one may answer for the other.
    asked = set(find_words(question))
    titles = [set(find_words(name_subject(*page))) for page in pages]
    others = set()
    for (n, other), (_, own) in permutations(enumerate(titles), 2):
        mine, theirs = own - other, other - own
        is_name = all(word[:1].isupper() for word in mine | theirs) and mine <= asked and not theirs & asked
        is_kind = any(word.islower() and len(word) >= MIN_KIND_CHARS for word in own & other)
        if mine and theirs and is_name and is_kind and len(own & other) >= max(len(mine), len(theirs)):
            others.add(n)
    return namesakes | others


def find_things_of_kind(question: str, pages: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The pages about things of the kind that a question does not name, each with what it is about; none for a single thing."""
    # Of "this library" these are "Ewell Library" and a page that begins with "The Orsa is a library".
    words = set(find_open_reference(question).split())
    if not words:
        return {}
    about: dict[int, str] = {}
    for number, (title, text) in enumerate(pages):
        subject = name_subject(title, text)
        what = _IS.split(text[: 2 * MAX_LEAD_CHARS].replace("\n", " "), maxsplit=1)
        said = find_words(what[1].casefold())[:MAX_KIND_WORDS] if len(what) > 1 and subject in what[0] else []
        name = find_words(subject.casefold())
        if subject[:1].isupper() or subject[:1].isdigit():
            about |= {number: subject} if words < set(name) or words <= set(said) else {}
    return about if len(set(about.values())) > 1 else {}


def _tell_apart(question: str, pages: Sequence[tuple[str, str]]) -> tuple[dict[int, str], frozenset[int]]:
    """What pages of one name are about, without those that are not meant; and the latter."""
    subjects = [name_subject(title, text) for title, text in pages]
    question_words = _words(question) - _UNSETTLING
    names = find_names(question)
    # names of pages, without what tells them from others, that the question has as they are; no command of a manual
    bare = dict.fromkeys(" ".join(_bare_words(subject)) for subject in subjects if subject[:1].isupper())
    called = [name for name in bare if " " in name and _fold(name) in _fold(question)]
    # "the Danger Mouse TV series" is one of "Danger Mouse (1981 TV series)"
    asides = {word for subject in subjects for word in _fold(subject.partition("(")[2]).split()}
    longer = [_fold(name) for name in names if not any({*_bare_words(name)} <= asides.union(each.split()) for each in called)]
    for name in (*names, *(name for name in called if not any(_fold(name) in text for text in longer))):
        about = {n: subject for n, subject in enumerate(subjects) if _has_name(subject, name) and not _LISTS.search(subject)}
        if len(set(about.values())) < 2 and not any(_bare_words(subject) == _bare_words(name) for subject in subjects):
            about = {n: subject for n, subject in enumerate(subjects) if _has_name_within(subject, name, pages[n][1])}
        if len(set(about.values())) < 2:
            continue
        full_name = max((_fold(s) for s in about.values() if _fold(s) in _fold(question)), key=len, default="")
        if len(full_name) > len(_fold(name)):  # it is called by its whole name
            namesakes = {number: subject for number, subject in about.items() if _fold(subject) == full_name}
            return namesakes, frozenset(about.keys() - namesakes.keys())
        clues = question_words & frozenset[str]().union(*map(_words, about.values())) - _words(name)
        leads = {number: _words(f"{about[number]} {pages[number][1][:MAX_LEAD_CHARS]}") for number in about}
        others = frozenset(number for number in about if not clues <= leads[number])
        if len(others) == len(about):
            others = frozenset()
        return {number: subject for number, subject in about.items() if number not in others}, others
    return {}, frozenset()


def name_subject(title: str, text: str = "") -> str:
    """What a page is about by its title, without the site that it is of; by the first words of a text without a title."""
    if title and not _FILE.search(title):
        return _SITE.split(title)[0].strip() or title
    lead = text.lstrip("# \n")[:MAX_LEAD_CHARS]
    matches = [match for pattern in (_REPEATED, _QUALIFIED) if (match := pattern.match(lead))]
    leads = [match["subject"] for match in matches if not _SENTENCE_END.search(match["subject"])]
    subject = _SITE.split(_LIFE.sub("", " ".join(min(leads, key=len, default="").split())))[0]
    return re.sub(r"\s+(?=[,)])", "", re.sub(r"\(\s+", "(", subject))


def may_be_same(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two pages, as title and text, may be about one thing: half of a name in common, or one of them has none."""
    ours, theirs = (set(_bare_words(name_subject(*page))) for page in (one, other))
    return not ours or not theirs or 2 * len(ours & theirs) >= min(len(ours), len(theirs))


def _has_name(subject: str, name: str) -> bool:
    """Whether something may be called by a name: as it is, with what tells it from others, or with middle names."""
    bare, words = _bare_words(subject), _bare_words(name)
    if words[:-1] and all(word in _HONORIFICS for word in words[:-1]):
        is_first = bare[:1] == words[-1:] and re.match(r"(?:of|the|[ivx]+)$", " ".join(bare[1:2])) is not None
        return is_first or (len(bare) > 1 and bare[-1] == words[-1])
    if not bare or not words or _ORDER.sub("", " ".join(bare)).split() == words:
        return bool(bare)
    # "Duke of Gandia" is a title of "Alfonso II, Duke of Gandia"; of "Luna Park, Coney Island" it is only the place
    if bare == words or ("of" in words and _bare_words(subject.partition(", ")[2]) == words):
        return True
    middle = bare[1:-1] if len(words) > 1 and (bare[0], bare[-1]) == (words[0], words[-1]) else []
    return 0 < len(bare) - len(words) <= MAX_MIDDLE and bool(middle) and set(words) <= set(bare)


def _has_name_within(subject: str, name: str, text: str) -> bool:
    """Whether something has a name as the end of a longer one, or before a number or "of", and its text says what it is."""
    # Of people, the last name is enough.
    whole = re.split(r"\s*[(,]", subject)[0]
    bare, words = _bare_words(subject), _bare_words(name)
    extra = len(bare) - len(words)
    lead = _IS.split(text[: 2 * MAX_LEAD_CHARS].replace("\n", " "), maxsplit=1)
    if not words or extra < 1 or len(lead) < 2 or not set(bare) <= set(find_words(lead[0].casefold())):
        return False
    if bare[: len(words)] == words:
        return (extra == 1 and bare[-1].isdecimal()) or (len(words) > 1 and bare[len(words)] == "of")
    is_last = bare[-len(words) :] == words and extra <= MAX_BEFORE and all(word[0].isupper() for word in whole.split()[:extra])
    return is_last and (len(words) > 1 or _BORN.search(lead[0]) is not None)


def _bare_words(text: str) -> list[str]:
    """The words of a name without an article and what tells it from others: brackets, what follows a comma."""
    bare = re.sub(r"['’]s\b", "", re.split(r"\s*[(,]", text.casefold())[0])
    return find_words(_ARTICLE.sub("", bare))


def _fold(text: str) -> str:
    return f" {' '.join(find_words(text.casefold()))} "


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w{3,}", text.lower()))
