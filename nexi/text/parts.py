"""The parts of a question: what it enumerates, and what its "it" and "there" refer to.

Below the planner, which makes tasks of the parts, and the built-in model, which answers each. Pure, and English except for what
`planner` knows of other languages: a sentence that does not fit stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.text.words import STOP, find_names, word_set

MAX_CONJUNCT_WORDS = 4
MAX_CONJUNCTS = 4
_AUXILIARIES = word_set("do does did is are was were has have had can could will would should may might must")
_BE = word_set("is are was were")
_DO_SUPPORT = word_set("do does did can could will would should may might must")
_PREPOSITIONS = word_set(
    "of in on at for from to by with under over during through between into about against before after as since until"
)
_MANNER = word_set("by with from into")
_ARTICLES = word_set("a an the")
_WH = word_set("how what who whom when where why which whose")
_NOUN_WH = word_set("what who whom which whose")
_COMMANDS = word_set("compare describe explain discuss list outline summarise summarize")
_PRONOUN = re.compile(
    r"\b(?:((?<!do )it|they|them|he|she|him)|(its|their|his|her)|(?<!is )(?<!are )(?<!was )(?<!were )(there)"
    r"(?! (?:is|are|was|were|has|have|had|exists?)\b))\b",
    re.IGNORECASE,
)
_SINGULAR = re.compile(r"\b(?:it|its)\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b(?:they|them|their)\b", re.IGNORECASE)
_SPEAKERS = word_set("you i we one people someone users")
_PARTICLES = word_set("up down out off back")
_PARTICLE_AFTER = re.compile(rf"\b(it|them) ({'|'.join(sorted(_PARTICLES))}|on)\b(?! the| an?\b)", re.IGNORECASE)
_RELATIONS = re.compile(
    r"\b(?:differences?|relationships?|relations?|distinction|similarities|connection|links?) between (.+)", re.I
)
_ACTION = re.compile(rf"\w+ing (?:{'|'.join(sorted(_PARTICLES))}) (?=\w)", re.I)  # "turning off autovacuum" concerns autovacuum
_ONE = re.compile(r"\b(?:is|are|was|do|does|did|can|should) (?:(?:you|i|we|they) \w+ )?ones?\b", re.IGNORECASE)
# Verbs that often stand between what is asked about and something else: "does Rust need a compiler".
_VERBS = word_set(
    "need use have handle store make offer provide support manage keep give take get cause affect change influence help let "
    "allow become require contain produce treat see call define protect prevent"
)
MAX_SUBJECT_WORDS = 3  # of a subject without capitals; of more, some belong to what is asked about it
_PARTICIPLE = ("ed", "wn", "en", "ung", "ught")
_IRREGULAR = word_set("built made sold lost won held kept sent spent laid led found set shut begun paid put read told")
_PREDICATES = word_set("good like")  # "what are submodules good for", "what was the city like"
_ASKED_THINGS = re.compile(r"(?:which|what) ((?:[\w-]+ ){0,2}[\w-]+) (?:do|does|did) ", re.IGNORECASE)
_NAME_WITH_AND = re.compile(r"(?:the )?(?:[A-Z]\w* )+and (?:[A-Z]\w* )+(?:War|Act|Company|Council|Party|Union|Wall)")
_LETTER = re.compile(r"[^\W\d_]")
_WORDS = re.compile(r"[^\s,;?!]+|[,;]")
_COMPARED = re.compile(
    r"\b(?:both|same|or|between|first|older|younger|earlier|later|longer|more|most|versus|vs|common|together)\b", re.IGNORECASE
)
_BROAD = re.compile(
    rf"\W*(?:how|why|what\s+(?:{'|'.join(sorted(_AUXILIARIES))})|{'|'.join(sorted(_COMMANDS))})\b"
    r"(?!.*\b(?:which|who|whose|whom|that)\b)[^\"“”]{1,200}\Z",
    re.IGNORECASE,
)


def find_subject(part: str) -> str:
    """Find what a question is about: `the steam engine` of "How did the steam engine develop"; "" where that is unclear."""
    if compared := _RELATIONS.search(part.rstrip("?!. ")):
        return _strip_words(_WORDS.findall(compared[1]))  # "the difference between A and B" is about A and B
    words = [word for word in _WORDS.findall(part.rstrip("?!. ")) if word not in (",", ";")]
    low = [word.lower() for word in words]
    start = next((i for i, word in enumerate(low) if word in _AUXILIARIES), -1)
    if len(low) > 1 and low[0] in _WH and (low[1] == "to" or low[1:3] == ["happens", "when"]):
        return ""
    is_clause = low[-1:] and (low[-1] in _BE or (start < 0 and low[0] in ("how", "why")))
    if len(low) > 2 and low[0] in _WH and low[1] not in ("to", "many", "much") and is_clause:
        return _strip_words(words[1:-1])  # "what a quick sort is", "how old kilns work"
    if start > 1 and low[0] in ("which", "what") and low[start + 1 : start + 2] and low[start + 1] in _SPEAKERS:
        return _strip_words(words[1:start])  # "which permits do I need"
    if start > 2 and low[0] in _WH - _NOUN_WH and low[1] in _ARTICLES:
        return _strip_words(words[1:start])  # "how a table is created"
    if start < 0:
        to = low.index("to", 3) if "to" in low[3:] else 0
        if to and low[0] in _WH and words[to - 1][:1].isupper():  # "what caused the Black Death to spread"
            return _strip_words(words[2:to])
        if low[:1] and low[0] in _COMMANDS - _WH:
            return _strip_words(words[(low.index("of") if "of" in low else 0) + 1 :])
        return _strip_words(words[2:] if low[:1] and low[0] in _WH else [])
    # "why does it not close", "run a program and get its output"
    ends = {"not"} | ({"and"} if any(match[2] for match in _PRONOUN.finditer(part)) else set())
    rest = words[start + 1 : next((i for i, word in enumerate(low) if i > start and word in ends), len(words))]
    phrase_end = next((i for i, word in enumerate(rest) if i and _leaves_phrase(rest, i)), len(rest))
    phrase, after = rest[:phrase_end], rest[phrase_end + 1 :]
    if "use" in low and [word.lower() for word in rest[phrase_end : phrase_end + 1]] == ["to"]:
        after = []  # "can I use pickle to save my objects" is about pickle
    of = phrase_end < len(rest) and rest[phrase_end].lower() == "of"
    if of and low[start] not in _DO_SUPPORT:
        return _strip_words(after)  # "the causes of X" asks about X
    is_followed = len(rest) - phrase_end > 1 and rest[phrase_end].lower() == "in"
    if low[start] in _DO_SUPPORT and is_followed and len([w for w in phrase if w.lower() not in _ARTICLES]) == 1:
        return _strip_words(rest[:-1])  # "does logging in Python work"
    if low[start] in _DO_SUPPORT and not (of and _find_article(phrase) == len(phrase)):
        phrase = _drop_verb(phrase)
    elif phrase[:1] and phrase[0][:1].isupper() and (end := _find_article(phrase)) < len(phrase):
        phrase = phrase[:end]  # "is SQLite a good choice"
    elif (low[0] != "what" or not after) and len(phrase) > 1:
        last = phrase[-1].lower()
        if last in _IRREGULAR | _PREDICATES or last.endswith(_PARTICIPLE):
            phrase = phrase[:-1]  # "what are drones used for"
    if is_followed and phrase and not _is_definite(phrase) and (low[0] == "what" or after[-1][:1].isupper()):
        return _strip_words([*phrase, *rest[phrase_end:]])  # "what is quick sorting in Java"
    manner = next((i for i, word in enumerate(after) if i and word.lower() in _MANNER), len(after))
    after = after[:manner] if _is_definite(after[:manner]) else after  # "records in Python by more than one field"
    # "does asyncio differ from threads in Python"
    is_whole = low[start] in _DO_SUPPORT and not _SPEAKERS.intersection(low[start + 1 : start + 2])
    return _strip_words(after if not _is_definite(phrase) and _is_definite(after) and not is_whole else phrase)


def find_object(part: str, subject: str) -> str:
    """The things that a subject of a question does something to: `foreign keys` of "Why does Zorb not enforce foreign keys"."""
    # Those of "which permits does Zorb need" stand before it.
    if (asked := _ASKED_THINGS.match(part)) and _is_plural(asked[1]):
        return asked[1]
    _, _, after = part.rstrip("?. ").partition(f"{subject} ") if subject else ("", "", "")
    words = after.removeprefix("not ").split()[1:]
    end = next((i for i, word in enumerate(words) if word.lower() in STOP), len(words))
    return " ".join(words[:end]) if _is_plural(" ".join(words[:end])) else ""


def asks_about_one(part: str) -> bool:
    """Whether a question is about one of what an earlier question names: "how is one made"."""
    return _ONE.search(part) is not None


def _leaves_phrase(words: Sequence[str], place: int) -> bool:
    """Whether a word is a preposition outside a name such as "Panel on Climate Change"."""
    if words[place].lower() not in _PREPOSITIONS:
        return False
    return not (words[place - 1][:1].isupper() and words[place + 1 : place + 2] and words[place + 1][:1].isupper())


def _is_definite(phrase: Sequence[str]) -> bool:
    return any(word[:1].isupper() or word.lower() == "the" for word in phrase)


def _drop_verb(phrase: Sequence[str]) -> list[str]:
    """Cut a phrase before its verb: at a second article, or before its last word. "affect the body" is about the body."""
    second = _find_article(phrase)
    head = list(phrase[:second])
    if head and head[0].lower() in _SPEAKERS:
        verbs = 4 if head[2:3] == ["and"] else 3 if head[2:3] and head[2].lower() in _PARTICLES else 2
        return [*head[verbs:], *phrase[second:]]  # "do you back up a database", "do I read and write files"
    if verb := next((i for i, word in enumerate(head) if i and word in _VERBS), 0):
        return head[:verb]
    if len(head) == 1 and second < len(phrase) and head[0].islower():
        return list(phrase[second:])
    if (plural := next((i for i, word in enumerate(head[:-2]) if word.islower() and _is_plural(word)), None)) is not None:
        return head[: plural + 1]  # "old firms rent large offices"
    capital = [i for i, word in enumerate(head) if word[:1].isupper()]
    if len(capital) > 1 and capital[-1] == len(head) - 1 and capital[-1] - capital[-2] == 2:
        head = head[: capital[-1]]  # "the Normans conquer England": a lower-case word between two names
    elif len(head) > 2 and capital == [len(head) - 1] and head[-2].islower():
        head = head[:-1]  # "railways change Britain"
    subject = head[:-1] if len(head) > 1 else head
    bare = [word for word in subject if word.lower() not in _ARTICLES]
    is_name = all(word[:1].isupper() or word.lower() in _PREPOSITIONS for word in bare)
    return subject if len(bare) <= MAX_SUBJECT_WORDS or is_name else []


def _find_article(phrase: Sequence[str]) -> int:
    """Where an article after the first word stands; the length of the phrase where there is none."""
    return next((i for i, word in enumerate(phrase) if i and word.lower() in _ARTICLES), len(phrase))


def _strip_words(words: Sequence[str]) -> str:
    rest = list(words)
    while rest and rest[-1].lower() in STOP:
        rest = rest[:-1]
    while rest and rest[0].lower() in STOP - _ARTICLES:
        rest = rest[1:]
    return _ACTION.sub("", _join_words(rest)) if any(word.lower() not in STOP and _LETTER.search(word) for word in rest) else ""


def find_antecedent(part: str, subjects: Sequence[str], *, strict: bool = False) -> str:
    """The subject that the pronoun of a part means: the first of its number, else the first or, with `strict`, none."""
    # "Triggers in SQLite" may mean both; what was named as one of many, such as "a conflict", comes last.
    names = sorted(filter(None, subjects), key=lambda subject: subject.lower().startswith(("a ", "an ")))
    names += [where for subject in names if (where := subject.partition(" in ")[2])]
    names += [name for subject in names if " and " in subject for name in find_names(subject)]  # Debian of "Debian A and B"
    if bool(_SINGULAR.search(part)) == bool(_PLURAL.search(part)):
        return names[0] if names else ""
    fallback = "" if strict or not names else names[0]
    return next((s for s in names if _is_plural(s) == bool(_PLURAL.search(part))), fallback)


def _is_plural(subject: str) -> bool:
    words = re.split(rf"\s+(?:{'|'.join(sorted(_PREPOSITIONS))})\s", subject.lower())[0].split()
    while words and words[-1].endswith(("ly", "ed")):  # "updates installed automatically"
        words.pop()
    if "and" in words:
        return not _NAME_WITH_AND.fullmatch(subject)
    return bool(words) and words[-1].endswith("s") and not words[-1].endswith(("ss", "us", "is", "'s", "’s"))


def name_subject(part: str, subject: str) -> str:
    """Put the subject in for the first "it" or "there" of a part that does not name it."""
    own, pronoun = find_subject(part), _PLURAL.search(part)
    is_own = own and pronoun and own in part[: pronoun.start()] and _is_plural(own)  # "do records keep their order"
    if not subject or subject.lower() in part.lower() or is_own:
        return part
    bare = re.sub(r"^(?:a|an)\s+", "the ", subject, flags=re.IGNORECASE)
    owner, _, where = bare.partition(" in ")
    possessive = f"{owner}'" if _is_plural(owner) and not owner[:1].isupper() else f"{owner}'s"
    part = _PARTICLE_AFTER.sub(r"\2 \1", part, count=1) if " " in bare else part  # "set up row-level security for a table"
    text = _PRONOUN.sub(lambda m: bare if m[1] else possessive if m[2] else f"in {bare}", part, count=1)
    mark = text[-1:] if text[-1:] in "?." else ""
    return f"{text.rstrip('?. ')} ({where}){mark}" if where and text != part and where not in text else text


def has_pronoun(part: str) -> bool:
    return _PRONOUN.search(part) is not None


def split_enumeration(part: str) -> list[str]:
    """Split "the causes and effects of X" into one question for each; [part] where nothing is enumerated."""
    body = part.rstrip("?!. ")
    tokens = _WORDS.findall(body)
    joints = [i for i, word in enumerate(tokens) if word.lower() == "and" and 0 < i < len(tokens) - 1]
    if len(joints) != 1 or _COMPARED.search(part) or not _BROAD.match(part):
        return [part]
    at = joints[0]
    ending = part[len(body) :].strip()
    # "the life of A and the life of B": both halves begin alike
    opening = [word.lower() for word in tokens[at + 1 : at + 3]]
    starts = range(1, at - 1) if opening[0] in _ARTICLES else ()
    if same := next((i for i in starts if [word.lower() for word in tokens[i : i + 2]] == opening), 0):
        return [_join_words([*tokens[:same], *item]) + ending for item in (tokens[same:at], tokens[at + 1 :])]
    first, items = _read_items(tokens, at)
    last = _read_conjunct(tokens, at + 1, items)
    lengths = [len(item) for item in (*items, last)]
    has_owner = any(match[2] for match in _PRONOUN.finditer(" ".join(last)))  # "run a program and get its output"
    if 0 in lengths or not 1 < len(lengths) <= MAX_CONJUNCTS or max(lengths) > MAX_CONJUNCT_WORDS or has_owner:
        return [part]
    articles = (items[0][0].lower(), tokens[first - 1].lower() if first else "")
    if len(items) == 1 and "the" in articles and items[0][-1][:1].isupper() and last[0][:1].isupper():
        return [part]  # "the French and Indian War" is one name: capitals on both sides after one article
    extra = len(items[0]) - max(map(len, (*items[1:], last)))
    if extra <= 0 and len(items[0]) > 1 and first and tokens[first - 1].lower() in _DO_SUPPORT:
        return [part]  # "how do I read and write files": the second verb has no subject, and the first no object
    if extra > 0:  # "how do owls hunt, nest and sleep": what all have in common
        first, items[0] = first + extra, items[0][extra:]
    head, tail = tokens[:first], tokens[at + 1 + len(last) :]
    if last[0] == head[-1:][0] if head else True:
        last = last[1:]
    is_comparison = [word.lower() for word in head] == ["compare"]
    if not head or not last or not (tail or len(items) > 1 or is_comparison or head[-1].lower() in _PREPOSITIONS | _ARTICLES):
        return [part]
    return [_join_words([*_agree(head, item), *item, *tail]) + ending for item in (*items, last)]


def _agree(head: Sequence[str], item: Sequence[str]) -> list[str]:
    """Put a verb before one of several things into the singular."""
    singular = {"are": "is", "were": "was"}.get(head[-1].lower()) if not item[-1].endswith("s") else None
    return [*head[:-1], singular] if singular else list(head)


def _read_conjunct(tokens: Sequence[str], start: int, items: Sequence[Sequence[str]]) -> list[str]:
    """Read the words after "and" up to a preposition, an auxiliary, a comma, what is no name beside names, or the end."""
    are_names = bool(items) and all(item[0][:1].isupper() for item in items)
    conjunct: list[str] = []
    for word in tokens[start:]:
        if (word.lower() in _PREPOSITIONS and conjunct) or word.lower() in _AUXILIARIES or word == ",":
            break
        if are_names and conjunct and word.islower() and conjunct[0][:1].isupper() and items[0][-1][:1].isupper():
            break
        conjunct.append(word)
    longest = max(map(len, items), default=0)
    return conjunct[:-1] if len(conjunct) > max(1, longest) and conjunct[-1].lower().endswith(_PARTICIPLE) else conjunct


def _read_items(tokens: Sequence[str], at: int) -> tuple[int, list[list[str]]]:
    """Read the conjuncts before "and", and where the first of them begins."""
    end = at - 1 if tokens[at - 1] == "," else at
    first = end
    while first and tokens[first - 1].lower() not in _PREPOSITIONS | _AUXILIARIES | _WH | _COMMANDS:
        first -= 1
        if tokens[first].lower() in _ARTICLES and first and tokens[first - 1] != ",":
            break
    items: list[list[str]] = [[]]
    for word in tokens[first:end]:
        if word == ",":
            items.append([])
        else:
            items[-1].append(word)
    return (first, items) if all(items) else (0, [])


def _join_words(words: Sequence[str]) -> str:
    return re.sub(r"\s+([,;])", r"\1", " ".join(words))
