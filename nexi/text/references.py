"""What a question leaves open: a thing that nothing has named, or which of several things of one name is meant. Pure.

Above are the doors that can ask back, the built-in model, which answers for each reading, and the check, which says what is
missing; below is `names`. What nothing has named ("this library", "the season", "the plan" after several) is for English only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

from nexi.text.scope import MAX_HEAD_CHARS
from nexi.text.whole import asks_about_whole
from nexi.text.words import STOP, find_names, find_words, has_words, word_set
from nexi.types import Message

MAX_QUESTION_CHARS = 1_000  # a longer one brings a text of its own, which names things
MAX_EARLIER_CHARS = 50_000  # of a conversation, its end
MAX_EARLIER_QUESTIONS = 20
# Kinds of things that have names of their own, so that "the library" without one may be any.
_KINDS = word_set(
    "accident actor actress agency agreement airline airport album amendment animal anime arena artist athlete attack "
    "author award band battle book bridge building campus car cathedral ceo championship character church city clinic club "
    "college company composer conference contract council country county course court crash department director disaster "
    "disease district documentary drug dynasty earthquake election emperor episode event exam exhibition explosion facility "
    "festival film firm flood footballer franchise gallery game governor hotel hurricane incident invasion island king lake "
    "language lawsuit library magazine manga massacre match mayor medication medicine merger minister model mosque mountain "
    "movie museum musical neighborhood newspaper novel office organization palace park party peninsula plan player podcast "
    "poet policy president prince product program programme project protagonist protest province queen rapper rebellion "
    "region religion restaurant revolution river scholarship school sdk senator sequel series show singer sitcom song "
    "species stadium state station statute storm street team test theory tournament town treaty trial tribe university "
    "vaccine venue village virus volcano war website writer"
)
# Kinds of which "the" means any or all ("who invented the camera", "go to the store"), so that only "this camera", "the
# camera's lens" and a camera that was released is one of them.
_POINTED_AT = word_set(
    "app bank bird boat brand breed burger cake camera canal casino castle cave cheese coin computer creature cuisine "
    "currency dance dessert device dinosaur dish dog dress drink engine estate farm fish flag flower forest fort fruit "
    "garden holiday hospital insect instrument lab laptop law lighthouse machine mall market meal mineral monument "
    "motorcycle nation ocean opera orchestra painting pet phone plane planet plant poem port printer recipe resort road "
    "robot rocket ruler sandwich satellite sauce scientist sculpture ship shop shrine snake soup spacecraft spice spider "
    "statue store suburb symphony telescope temple theater theatre tool tower toy trail train tree trophy tunnel vehicle "
    "weapon whale wine zoo"
)
_SYNONYMS = (
    "book novel; film movie documentary; show series sitcom anime; city town village; company firm; "
    "country nation state; drug medicine medication; car vehicle; ship boat; store shop; writer author poet; "
    "program programme; king emperor ruler"
)
_KIND = "|".join(sorted((*_KINDS, *_POINTED_AT), key=len, reverse=True))
# "The car industry" is no car.
_COMPOUND = (
    r"(?:exchanges?|industr(?:y|ies)|sector|markets?|systems?|business(?:es)?|economy|governments?|limits?|trade|culture|production|"
    r"scene|world)"
)
# "The longest river" and "the first president" are told from others by their rank; "the origin of species" is no species.
_RANKED = r"(?:\w{2,}est|first|second|third|last|next|only|main|most|least|best|worst|world['’]s|of|in|for|on|and)"
_ACRONYM = re.compile(r"\b(?:AI|API|CD|CEO|DVD|GPS|PC|SDK|TV|USB)\b")  # a word like any other, and no name
# Words of which the names of offices consist, so that "the Superior Court" may be that of any county.
_AUTHORITY = r"(?:Circuit|City|County|District|Fire|Municipal|Police|Prime|Probate|Public|Superior|Town)"
_OFFICE = re.compile(
    rf"\b[Tt]he\s+(?:(?:{_AUTHORITY}\s+)+(?:Attorney|Board|Clerk|Council|Court|Department|Hospital|Library|Minister|School)|"
    r"(?:President|Mayor|Governor|Chancellor|Sheriff))\b(?!\s+(?:of\s|in\s|for\s)?[A-Z])"
)
_OPEN = re.compile(
    rf"\b(?P<lead>this|these|those|the|(?:about|by|did|does|for|from|in|is|of|was|with) that|a (?:certain|particular|specific))"
    rf"\s+(?P<before>(?:(?!{_RANKED}\b)[a-z][a-z-]+\s+){{0,3}}?)(?:(?:{_KIND})\s+)*"
    rf"(?P<kind>(?:(?:fire|police|prime|superior)\s+)?(?:{_KIND}))(?P<ending>['’]s|s['’]?)?\b"
    rf"(?!\s+{_COMPOUND}\b)(?=(?P<rest>[^?.!]*))",
    re.IGNORECASE,
)
_NAMED_BY = re.compile(
    r"\s*(?:of|in|for|by|from|at|on|called|named|that|which|who|where|to|with)\s+(?:the\s+)?[\"“A-Z\d]|\s+[\"“A-Z\d]|\s+of\s"
)
_CALLED = re.compile(r"\s*,?\s*(?:called|named)\s|\s*,?\s+[\"“A-Z]")  # "this song, Yesterday"
_OF_PEOPLE = re.compile(r"\w+(?:ish|ese|ian|an|ic|i)")  # an adjective: "Jewish" names no thing
_ONE_FACT = re.compile(r"\b(?:located|situated|built|painted|released|launched|premiered|filmed|opened|demolished|sank|sunk)\b")
_OWNED = re.compile(r"(?:\s+[A-Z][\w-]*)+")
_NAME_BEFORE = re.compile(r"[A-Z][\w'’-]*\s+$")
# What is made or held again and again under one name: the season of a series, the cup that was won.
_EDITIONS = r"(?:season|episode|sequel|instal?lment|edition)"
_CUPS = r"(?:world cup|super bowl|olympics|olympic games|grand prix|championship|elections?|world series|tournament)"
_RECURRING = re.compile(
    rf"\b(?:the|which|what)\s+(?P<of>{_EDITIONS})\s+of\s+(?:the\s+)?[\"“A-Z]"
    rf"|\bthe\s+(?:[\"“A-Z][\w.'’&:”\"-]*\s+(?:of\s+|the\s+)?){{1,5}}(?P<after>{_EDITIONS})\b"
    rf"|(?i:\b(?:won|win|winner|hosted|host|lost|champions?|held)\b[^?.!]{{0,99}}?\b(?P<cup>{_CUPS})\b)"
)
_IN_PAST = re.compile(r"\b(?:did|was|were|won|lost|held|\w+ed)\b")
# What tells one of them: a number, a rank, a description.
_ONE_OF_ALL = re.compile(
    r"\d|\b(?:\w{2,}est|\w+th|first|second|third|last|next|only|most|current|recent|previous|final|ever|all|each|every|any|many|"
    r"often|ago|[IVXL]{2,})\b|\b(?:that|which|when|where|with|against|after|before)\s+(?:[\"“A-Z]|the\b|he\b|she\b|they\b)"
)
# A pronoun of a first question stands for nothing; "it" stands for one of two things that the last question compared.
_PRONOUN = re.compile(
    r"(?:what|how(?: (?:big|deep|far|fast|heavy|high|large|long|many \w+|much|old|tall))?|when|where|who|what year)"
    r" (?:(?:is|was|does|did|has|can|will) (?P<pronoun>it|he|she)|(?:are|were) they)\b"
    r"(?! (?:\w+ )?to\b| (?:get|like|matter|rain|snow)\b)(?: [\w'’]+){0,3}\W*|who \w+ (?P<object>it|him|her|them)\W*",
    re.IGNORECASE,
)
_WORD_FOR_ANY = re.compile(r"\b(?:it|its|he|him|his|she|her|they|them|their)\b", re.IGNORECASE)
_COMPARISON = re.compile(
    r"\b(?:which|what|who)\b[^?]{0,99}\b(?:better|best|worse|\w{3,}er)\b[^?]{0,99}\bor\b"
    r"|\bdifferences? between\b[^?]{0,99}\band\b",
    re.IGNORECASE,
)
_PLURAL_SUBJECT = re.compile(r"\bdo (?!this\b)[a-z]+[a-rt-z]s\b")
_IT = re.compile(
    r"\b(?:is|was|does|did|can|could|will|would|should) it\b"
    r"(?! (?:\w+ly )?(?:true|possible|safe|ok|okay|legal|necessary|worth|better|good|bad|normal|easy|hard|likely|important)\b"
    r"|[^?.!]{0,99} to\b)",
    re.IGNORECASE,
)
_ONE_THING = re.compile(r"\b(?:the|this)\s+(?P<kind>[a-z]{3,}|[A-Z]{2,})(?=\s*[?.!,]|\s*$|\s+(?P<next>\w+))")
_SEVERAL = r"\b(?:(?:kinds|sorts|types|examples) of|which|what|different|various|several|two|three)\s+(?!are\b)(?:\w+\s+){0,2}?"
_COMPLETED = frozenset(("of", "for", "that", "which", "who", "in", "on", "from", "by", "with", "where"))  # "the plan for Ewell"
# What "this" may point at outside of the conversation: the present, what a person sees, and the documents at hand.
_AT_HAND = word_set(
    "age afternoon answer article case century chart chat code conversation date day decade document era error evening file "
    "folder form image issue kind life link list message moment month morning night note one page paper period picture "
    "point problem question repo report sentence site situation sort spring summer table text thing time type universe "
    "version way website week weekend winter word world year"
)
_FIRST_THIS = re.compile(
    r"\b(?:about|at|by|for|from|in|of|on|with)\s+this\s+(?P<kind>(?!\w+ing\b)[a-z]{3,})(?=\s*[?.!,]|\s*$|\s+(?P<next>\w+))"
)


def find_open_reference(question: str, earlier: Sequence[Message] = ()) -> str:
    """The kind of thing that a question speaks of as known, but that neither it nor the conversation has named; "" for none."""
    # It is "one" where the question may mean any of the things that the conversation has named.
    is_chosen = question.rstrip().endswith(")")  # a reading that was chosen stands in brackets
    if len(question) > MAX_QUESTION_CHARS or is_chosen or asks_about_whole(question):
        return ""
    before = " ".join(message.content for message in earlier)[-MAX_EARLIER_CHARS:].lower()
    questions = [message.content[:MAX_QUESTION_CHARS] for message in earlier if message.role == "user"][-MAX_EARLIER_QUESTIONS:]
    return (
        _find_unnamed(question, before)
        or _find_recurring(question, before)
        or (_find_one_of_several(question, questions) if earlier else _find_first(question))
    )


def _find_unnamed(question: str, before: str) -> str:
    """A kind of thing that has names of its own and here has none."""
    # "This library" points at one; "the library" of a question with any name belongs to that, and without capitals none shows.
    question = _OFFICE.sub(lambda match: match[0].lower(), _ACRONYM.sub(lambda match: match[0].lower(), question))
    for match in _OPEN.finditer(question):
        kind, lead, ending, words = (match[name] or "" for name in ("kind", "lead", "ending", "before"))
        is_plural_that = lead.endswith("that") and ending.startswith("s")  # "is that animals sleep"
        is_mentioned = not lead.startswith("a ") and _is_mentioned(kind.lower(), before)
        if is_plural_that or STOP.intersection(words.lower().split()) or is_mentioned:
            continue
        rest = match["rest"]
        if ending.startswith(("'", "’")):  # the name in "the department's Explorer program" is not that of the department
            rest = _OWNED.sub("", rest)
        if lead.lower() != "the":
            is_named = _CALLED.match(rest) is not None
        else:
            names = find_names(question[: match.end()] + rest)
            is_any = kind.lower() in _POINTED_AT and ending not in ("'s", "’s") and not _ONE_FACT.search(question)
            is_plain = ending.startswith("s") or words != words.lower() or question.islower()
            has_other_name = any(not _OF_PEOPLE.fullmatch(name) for name in names)
            is_named = is_any or is_plain or has_other_name or _NAMED_BY.match(rest) is not None
        if not is_named and not _NAME_BEFORE.search(question[: match.start("kind")]):
            return kind.lower()
    return ""


def _find_recurring(question: str, before: str) -> str:
    """A season, an episode or a cup that was, where its name alone is known."""
    match = _RECURRING.search(question)
    if not match or not _IN_PAST.search(question) or _ONE_OF_ALL.search(question):
        return ""
    kind = next(filter(None, match.groups())).lower()
    return "" if _is_mentioned(kind, before) else kind


def _find_one_of_several(question: str, questions: Sequence[str]) -> str:
    """One of the plans that were asked about, where none was named since; or one of the things that were compared last."""
    if questions and _IT.search(question) and (_COMPARISON.search(questions[-1]) or _PLURAL_SUBJECT.search(questions[-1])):
        return "one"
    things = [(match["kind"].lower(), (match["next"] or "is").lower()) for match in _ONE_THING.finditer(question)]
    for kind in dict.fromkeys(kind for kind, following in things if following in STOP - _COMPLETED):
        for earlier in reversed(questions):
            if re.search(rf"{_SEVERAL}{_pluralise(kind)}\b|\b(?:each|every) {re.escape(kind)}\b", earlier, re.IGNORECASE):
                return kind
            if any(word.lower() not in STOP for word in re.findall(rf"(\w+)\s+{re.escape(kind)}\b", earlier, re.IGNORECASE)):
                break  # one of them was named
    return ""


def _find_first(question: str) -> str:
    """A thing or a person that the first question of a conversation points at."""
    if match := _PRONOUN.fullmatch(question.strip()):
        return "thing" if "it" in (match["pronoun"], match["object"]) else "one"
    for match in _FIRST_THIS.finditer(question):
        if match["kind"] not in _AT_HAND | STOP and (not match["next"] or match["next"].lower() in STOP):
            return match["kind"]
    return ""


def describe_open_reference(question: str, kind: str) -> str:
    """What a question does not say, with the word that stands for it: "which library is meant", "what “it” refers to"."""
    word = _WORD_FOR_ANY.search(question) if kind in ("thing", "one") else None
    return f"what “{word[0].lower()}” refers to" if word else f"which {kind} is meant"


@lru_cache(maxsize=64)
def _is_mentioned(kind: str, before: str) -> bool:
    """Whether the conversation has a word for such a thing, though not as half of another word ("price-to-book")."""
    words = next((group for group in map(word_set, _SYNONYMS.split("; ")) if kind in group), frozenset((kind,)))
    return any(re.search(rf"(?<![\w-])(?:{re.escape(word)}|{_pluralise(word)})\b", before) for word in words)


def _pluralise(word: str) -> str:
    return rf"{re.escape(word.removesuffix('y'))}(?:s|es|ies)"


# Which of several things of one name is meant.

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
