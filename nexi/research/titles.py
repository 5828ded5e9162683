"""Titles and headings of a report, made of the question and its parts: what it is about, and not the prompt.

Below everything in this folder that writes a report. Pure, and English: a question in another language stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.research.planner import COMMAND, TOPIC, split_question
from nexi.text.parts import asks_about_one, find_subject, split_enumeration
from nexi.text.sentences import sentence_bounds
from nexi.text.words import STOP, find_names

MAX_TITLE_CHARS = 110
MAX_NAMES = 3
_WHAT_ARE = re.compile(r"^what (?:is|are|was|were) (?:the )?(?=(?:[\w-]+,? ){1,5}(?:of|in|for|between|behind)\b)", re.I)
_WORD = re.compile(r"[^\s()?!.,;:]+")
_ASKED = r"(?:how|what|why|when|where|which|who)"
_INDIRECT = re.compile(rf"{_ASKED}\b[^?]*$", re.IGNORECASE)
_COLON = re.compile(r"([^:?]{2,60}): ")
_AUXILIARY = r"(?:is|are|was|were|do|does|did|can|could|may|might|must|shall|should|will|would|has|have|had)"
_MEASURE = (
    r"(?:bad|big|close|cold|common|deep|difficult|early|easy|expensive|far|fast|good|hard|heavy|high|hot|large|late|likely|long|"
    r"many|much|near|often|old|quickly|safe|small|soon|strong|tall|well|wide)"
)
# "How errors are handled" and "what a lock is" tell what a section says, and are no questions.
_INDIRECT_ORDER = re.compile(
    rf"^(?:(?:how|why|when|where) (?!{_AUXILIARY}\b|{_MEASURE}\b)\S+ .+"
    rf"|{_ASKED} (?!{_AUXILIARY}\b)\S+ (?:\S+ )*(?:is|are|was|were|does|do|did)|what (?:it|they|he|she) .+)\?$",
    re.IGNORECASE,
)
_SUBJECT_HINT = re.compile(r"\s*\(([^()]*)\)(?=[?.]?$)")

_HOW_TO = re.compile(r"^how (?:do|can|should) (?:you|i|we) ([^?(]+?)\s*(?:\([^()]*\))?\?*$", re.IGNORECASE)
_WITHOUT_SUBJECT = re.compile(r"^(?:Why|When|Where|How) (?:does|is|are) (it|.+?(?= not\b)) ")
_WHAT_IS = re.compile(r"^(?:what|who) (?:is|are|was|were)\b", re.IGNORECASE)
_OFFERS = re.compile(
    rf"^(?:[Ww]hat|[Ww]hich) (?!{_AUXILIARY}\b)([a-z][^?]*?) (?:do|does|did|can|has|have) ([A-Z]\S*)(?: \w+)?\?$"
)
# "Compare A and B, and when should each be used?" is about A and B.
_AND_ASKED = re.compile(rf"(?<=\w),? (?:and )?{_ASKED} {_AUXILIARY}\b[^?]*\?$| for (?:my|our) \w+(?: \w+)?$", re.IGNORECASE)


def make_title(question: str) -> str:
    """The title of a report: what the question is about where it has several parts, and never more than a line."""
    lines = [" ".join(line.split()) for line in question.splitlines() if line.strip()] or [question]
    sentences = [line[start:end].strip() for line in lines for start, end in sentence_bounds(line, len(line) or 1)] or lines
    first = next((s for s in sentences if _strip_command(s) != s), sentences[0])
    plain = _AND_ASKED.sub("", rest) if (rest := _strip_command(first)) != first else first
    short = _WHAT_ARE.sub("", plain)
    parts = split_question(question)
    names = find_names(question)
    if topic := TOPIC.match(plain) or (_COLON.match(plain) if plain != first else None):
        title = find_subject(topic[1]) or topic[1]
    elif plain != first or (short != plain and not any(part.endswith("?") and not _WHAT_ARE.match(part) for part in parts)):
        title = short.rstrip("?. ")
    elif len(parts) > 1:
        common, subject = _find_common_phrase(parts), re.sub(r"^(?:an?|the) ", "", find_subject(parts[0]), flags=re.IGNORECASE)
        is_in_subject = common and _fold_phrase(common.split()) in _fold_phrase(subject.split())
        if one := next((hint[1] for part in parts if asks_about_one(part) and (hint := _SUBJECT_HINT.search(part))), ""):
            common = re.sub(r"^(?:an?|the) ", "", one)  # "how is one made"
        elif is_in_subject and split_enumeration(question) != parts:
            common = subject  # "triggers in SQLite" and not "SQLite"
        elif "," in subject and _fold_phrase(common.split()) == _fold_phrase(subject.replace(",", "").split()):
            common = subject  # with its commas
        elif " " not in common and common[:1].isupper() and not is_in_subject:
            common = ""  # a name that the first part has in passing
        listed = list(dict.fromkeys(names))[:MAX_NAMES] if len(names) > 1 else []
        is_one_each = len(listed) == len(parts) and all(name in part for name, part in zip(listed, parts, strict=True))
        if common and (not is_one_each or any(word[:1].isupper() for word in common.split())):
            title = common
        else:
            title = ": ".join(filter(None, (common, " and ".join(filter(None, (", ".join(listed[:-1]), *listed[-1:]))))))
        how_to = _HOW_TO.match(parts[0])
        if how_to and (not common or common in names or subject != find_subject(parts[0])):  # "a database" names no subject
            title = f"How to {how_to[1]}"
        elif not common and names and names[0] != subject and names[0] in subject:
            title = subject  # "logical locks in Zorb" and not "Zorb and Norway"
        elif (not common and names[:1] == [subject] and parts[0].startswith(("How", "Why"))) or (
            title in names and title == find_subject(parts[0]) and not _WHAT_IS.match(parts[0])
        ):
            title = _state_question(parts[0])
        title = (title or _state_question(parts[0])).rstrip("?") or plain
    elif how_to := _HOW_TO.match(plain):
        title = f"How to {how_to[1]}"
    else:
        title = _state_question(plain) if plain == parts[0] else plain
    if len(title) > MAX_TITLE_CHARS:
        title = title[:MAX_TITLE_CHARS].rpartition(" ")[0].rstrip(" ,;:(") + " …"
    return title[:1].upper() + title[1:]


def _state_question(part: str) -> str:
    """The heading of a question in the order of a statement: "When SQLite is a good choice", "Index types in PostgreSQL"."""
    heading = make_heading(part)
    subject = find_subject(part)
    if match := _OFFERS.match(heading):
        return f"{match[1]} in {match[2]}"
    if doing := re.match(rf"^What does ({re.escape(subject)}) do\b(.*)\?$", heading) if subject else None:
        return f"What {doing[1]} does{doing[2]}"
    if not subject and (doubt := _WITHOUT_SUBJECT.match(heading)):
        subject = doubt[1]
    match = re.match(rf"^(\w+) (do|does|is|are|was|were) (?:({re.escape(subject)}) )?(.+)\?$", heading) if subject else None
    if not match or not (match[2] == "do" or match[3]) or match[1].lower() in ("what", "who", "which"):
        return heading
    if match[4].startswith("not "):
        return " ".join(filter(None, (match[1], match[3], match[2], match[4])))
    if match[2] == "does":
        verb, _, rest = match[4].partition(" ")  # of "the kiln dry clay" one cannot say which word it is
        is_verb = not rest or subject == "it" or subject.split()[-1][:1].isupper()
        return " ".join(filter(None, (match[1], match[3], _add_s(verb), rest))) if is_verb else heading
    return " ".join(filter(None, (match[1], match[3], match[2] if match[2] != "do" else "", match[4])))


def _add_s(verb: str) -> str:
    """A verb as it stands after "she": "works", "passes", "tries"."""
    if verb.endswith("y") and verb[-2:-1] not in "aeou":
        return f"{verb[:-1]}ies"
    return {"have": "has"}.get(verb) or f"{verb}{'es' if verb.endswith(('s', 'x', 'z', 'ch', 'sh', 'o')) else 's'}"


def _find_common_phrase(parts: Sequence[str]) -> str:
    """The longest phrase of the first part that all parts have, without the words of the question around it."""
    words = [word.strip("()?!.,;:") for word in parts[0].split()]
    others = [_fold_phrase(_WORD.findall(part)) for part in parts[1:]]
    runs = [words[start:end] for start in range(len(words)) for end in range(start + 1, len(words) + 1)]
    phrases = [_strip_ends(run) for run in runs if all(_fold_phrase(run) in other for other in others)]
    longest = max(phrases, key=len) if phrases else []
    return re.sub(r"['’]s?$", "", " ".join(longest))


def _fold_phrase(words: Sequence[str]) -> str:
    return re.sub(r"['’]s?(?= )", "", f" {' '.join(words)} ").casefold()


def _strip_ends(words: Sequence[str]) -> list[str]:
    """A phrase without verbs, prepositions and words of a question at its ends."""
    phrase = list(words)
    while phrase and (phrase[-1].lower() in STOP or phrase[-1].lower().endswith(("ed", "wn"))):
        phrase.pop()
    while phrase and (phrase[0].lower() in STOP - {"the"} or phrase[0].lower().endswith("ed")):
        phrase.pop(0)
    return phrase if any(word.lower() not in STOP for word in phrase) else []


def make_heading(part: str) -> str:
    """The heading of a part: without the subject in brackets that its search needs, and without "Describe" or "Compare"."""
    named = part if asks_about_one(part) else _SUBJECT_HINT.sub("", part)  # "one" needs it: "How is one made (latches)?"
    heading = _strip_command(TOPIC.sub("", _strip_command(named)))
    if _INDIRECT_ORDER.match(heading):
        return heading.rstrip("?")
    return heading.rstrip(".") if _INDIRECT.match(heading) else heading


def _strip_command(text: str) -> str:
    command = COMMAND.match(text)
    rest = text[command.end() :].rstrip(".") if command and command.end() < len(text) else text
    return rest[:1].upper() + rest[1:]
