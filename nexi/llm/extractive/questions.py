"""What a question asks for: its weighted words, the names in it, the kind of answer it wants.

Pure and small; reads only the question. General English, no subject, no site.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from nexi.llm.extractive._lexicon import CODE_NOUNS, FILLER
from nexi.llm.extractive._limits import MAX_ALTERNATIVES, MAX_HEAD_WORDS, MAX_QUERY_CHARS, MAX_QUESTION_CHARS, MAX_SENTENCES
from nexi.llm.extractive._weights import general_rarity, load_weights
from nexi.llm.extractive.passages import ContentWords
from nexi.text.languages import LANGUAGES, detect_language, find_asked_kind, strip_question_words
from nexi.text.parts import find_antecedent, find_subject, has_pronoun, name_subject
from nexi.text.words import drop_stop_words, find_words

Wants = Literal["person", "date", "number", "place", "code", "name", "yesno", ""]
Form = Literal["list", "how", "definition", "topic", ""]  # of the answer; a topic is named and nothing is asked about it

RANKING = "ranking.json"  # the weights by which sentences are ranked before one is chosen
_CODE_HINT = re.compile(r"[a-z]+_[a-z]+|\w\(\)|--\w|\b[a-z]+\.[a-z]+\w*\b")
_PERSON = re.compile(
    r"\bwho(?:m|se)?\b"
    r"|\b(?:which|what) (?:person|man|woman|player|actor|actress|singer|king|queen|author|director|leader)\b",
    re.I,
)
_DATE = re.compile(
    r"\bwhen\b|\bhow old\b|\b(?:what|which) (?:(?:is|was|are|were) the )?(?:\w+ )?"
    r"(?:year|date|day|month|century|decade|time period|era)\b",
    re.I,
)
_NUMBER = re.compile(
    r"\bhow (?:many|much|long|far|tall|high|big|large|often|deep|wide|heavy|fast)\b|\bwhat (?:percentage|percent|number|amount|"
    r"population|size|fraction|distance|temperature|age)\b|\bwhat (?:is|was|are|were) the (?:\w+ ){0,2}(?:number|percentage|"
    r"population|size|amount|cost|price|value|default|height|length|age|distance|temperature)\b",
    re.I,
)
_PLACE = re.compile(
    r"\bwhere\b|\b(?:what|which) (?:(?:is|was) the )?(?:\w+ )?"
    r"(?:city|country|state|town|county|region|province|continent|place|location|nation|birthplace|"
    r"island|river|village|area|district)\b",
    re.I,
)
_MEASURED = re.compile(  # a topic that ends with what is wanted of something, or begins with it: "population of Warsaw"
    r"\b(?:population|size|length|height|width|depth|distance|speed|weight|mass|area|price|cost|rate|percentage|temperature|"
    r"point|number|maximum|minimum|max|limit|port|default|salary|budget|age)\b",
    re.I,
)
_DATED = re.compile(r"\b(?:years?|date|founded|birthday|released?|opening)\b", re.I)
_HELD = re.compile(r"\b(?:founder|director|author|inventor|owner|singer|president|creator|composer|writer)\b", re.I)
_YES_NO = re.compile(r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|must)\b", re.I)
_HOW_TO = re.compile(r"^\W*how (?:do|can|to|does one|would|should)\b", re.I)
_WH = re.compile(r"\b(?:what|which)\s+((?:[\w-]+\s+){1,4})", re.I)
_PLAINLY_CODE = frozenset(("function", "command", "module", "method"))
_SIGNS: tuple[tuple[Wants, re.Pattern[str]], ...] = (
    ("date", _DATE),
    ("number", _NUMBER),
    ("place", _PLACE),
    ("person", _PERSON),
    ("yesno", _YES_NO),
    ("name", re.compile(r"\b(?:what|which)\b", re.I)),
)
_TOPICS: tuple[tuple[Wants, re.Pattern[str]], ...] = (("date", _DATED), ("number", _MEASURED), ("person", _HELD))
_CAP = r"[A-ZÀ-ÞŁŚŽČŠŌĀŪ][\w'’.-]*"
_NAME = re.compile(rf"{_CAP}(?: (?:(?:of|the|de|la|le|von|van|der|den|du|di|da|del|al|ibn) ){{0,2}}{_CAP})*")
_AFTER_NAMES = re.compile(r"\s+(?:both|(?:(?:from|in|of|at|have|has|share|located|based|born)\s+){0,2}the same)\b.*$", re.I)
_OR = re.compile(
    r"(?:,|:|\b(?:between|of|either|are|out of)|^\W*(?:were|was|is|do|does|did))\s+(?:both\s+)?"
    r"([^,:?]+(?:,[^,:?]+)??),?\s+(?:or|and)\s+([^?]+?)\s*\?*$",
    re.I,
)
# What people say around a question when they talk; it asks for nothing, and no page has to say it.
_TALK = re.compile(
    r"^\W*(?:(?:oh|ok|okay|so|well|hi|hello|hey|thanks|thank you|great|interesting|actually|sorry)\s?[,.!:-]+\s+"
    r"|(?:oops|btw|by the way)\b[\s,.!:-]+)*"
    r"(?:(?:(?:can|could|would|will) you (?:please )?|please )(?:explain|describe|(?:tell|give|provide|show)(?: (?:me|us))?"
    r"(?: with)?(?: (?:some|any|more|further))*(?: (?:details?|information|info))?(?: (?:of|on|about|regarding))?)\s+"
    r"|do you (?:know|think)(?: (?:that|if|whether|about))?\s+|tell (?:me|us)(?: more)? about\s+"
    r"|i(?:'d|’d| would)? (?:like|love|want|need) to (?:know|learn|hear|understand)(?: more)?"
    r"(?: (?:about|of|if|whether))?\s+)?",
    re.I,
)
_VERSUS = re.compile(r"^(.+?)\s+(?:vs\.?|versus)\s+(.+?)\W*$|\bdifference between\s+(.+?)\s+and\s+(.+?)\W*$", re.I)
_QUESTION_WORD = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how)\b", re.I)
_LISTED = re.compile(
    r"\b(?:list|types|kinds|names|examples) of\b|\b(?:what|which) (?:are|were)\b"
    r"|\b(?:what|which) (?:\w+ )?\w+[^\Wsui]s (?:do|does|did|are|were|have|has|can)\b",
    re.I,
)
_DEFINITION = re.compile(
    r"^\W*(?:what|who)(?:'s| is| was) (?!the \w+ of\b)|\bwhat does .+ mean\b|\b(?:meaning|definition)\b", re.I
)
# One thing that is to be explained, in at most three words: "what is gold", "who was Ada Lovelace".
_THING = re.compile(r"^\W*(?:what|who)(?:['’]s| is| was| are| were) (?:(?:an?|the) )?([\w.+#-]+(?: [\w.+#-]+){,2}?)\W*$", re.I)
_RELATION = re.compile(r"\b(?:of|in|for|to|from|by|on|at|with|after|before|and|or|not|it|this|that|there|your?|my)\b", re.I)
_PLURAL = re.compile(r"[^\Wsui]s$", re.I)
_WANTS_ABROAD: Mapping[str, Wants] = {"date": "date", "person": "person", "place": "place", "number": "number", "": ""}
# Where one sentence asks several things, in English.
_ASKING_WORD = r"(?:what|how|when|where|why|who|which|whose)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|should|will|would|must)"
_BEGINS = re.compile(rf"\W*(?:(?:in|at|on|for|from|to) )?(?:{_ASKING_WORD}|{_AUXILIARY})\b", re.IGNORECASE)
_JOINT = re.compile(
    rf"(?:\?\s+(?:and\s+)?(?=\w)|[,;]?\s+and\s+(?:also\s+)?(?={_ASKING_WORD}\s+\w)"
    rf"|[,;]\s+(?=(?:what|how|when|where|why)\s+(?:{_AUXILIARY}|much|many|long|often|old|big|far|large|high|tall|wide|deep)\b"
    rf"|(?:what|which|whose)\s+\w+\s+{_AUXILIARY}\b|who\s+\w+\s+(?:it|them|him|her)\b))",
    re.IGNORECASE,
)
_ENDS_OPEN = re.compile(rf"\b(?:{_ASKING_WORD}|to|and|or|than|as)\W*$", re.IGNORECASE)
_IS_ONE = re.compile(
    r"\b(?:difference|differences|compare|compared|both|same|versus|vs|relationship|between|either|older|younger|earlier|later)\b",
    re.IGNORECASE,
)


class Question(Struct, frozen=True):
    """A question, read once. `weights` are per stem; `choices` the alternatives it offers; `language` its code or ""."""

    text: str
    stems: tuple[str, ...]
    weights: Mapping[str, float]
    choices: tuple[str, ...]
    wants: Wants
    language: str = ""
    context: str = ""  # what was asked before it in the conversation

    def __hash__(self) -> int:  # a mapping has none
        return hash((self.text, self.language))

    @property
    def form(self) -> Form:
        """The form of the answer, for questions in English."""
        if _HOW_TO.search(self.text):
            return "how"
        if _LISTED.search(self.text):
            return "list"
        if _DEFINITION.search(self.text):
            return "definition"
        if _QUESTION_WORD.search(self.text) or self.wants == "yesno" or self.language or not self.stems:
            return ""
        head = re.split(r"\s+(?:of|in|for)\s+", self.text.rstrip("?!. "))[0].split()[-1]
        return "list" if _PLURAL.search(head) else "topic"

    @property
    def thing(self) -> str:
        """The one thing that is to be explained; "" where something else is asked."""
        match = _THING.match(self.text) if self.form == "definition" and not self.language else None
        return match[1] if match and not _RELATION.search(match[1]) else ""

    @property
    def sets_side_by_side(self) -> bool:
        """Whether two things are named to be compared, and nothing else is asked about them."""
        return bool(self.choices) and (_VERSUS.search(self.text) is not None or self.form == "topic")

    @property
    def word_shares(self) -> dict[str, float]:
        """What each word counts by how rare it is in English; together they are 1."""
        raw = {word: weight * general_rarity(word) for word, weight in self.weights.items()}
        whole = sum(raw.values()) or 1.0
        return {word: value / whole for word, value in raw.items()}

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Words that stand side by side in the question."""
        return frozenset(pairwise(self.stems))


def read_question(text: str, context: str = "") -> Question:
    """Read a question; `context` is what was asked before it, for words it leaves out."""
    text = " ".join(text[:MAX_QUESTION_CHARS].split())
    rest = _TALK.sub("", text, count=1)
    text = rest if ContentWords().stems(rest) else text
    language = code if (code := detect_language(text)) in LANGUAGES else ""
    words = ContentWords(language)
    stems = words.stems(strip_question_words(text, language)) or words.stems(text)
    filler = {s for w in FILLER for s in words.stems(w)}
    little = load_weights(RANKING)["little"]  # what a word that says little counts, and one of an earlier question
    weights = {s: little if s in filler else 1.0 for s in stems}
    for stem in words.stems(context[:MAX_QUESTION_CHARS]):
        weights.setdefault(stem, little)
    wants = _WANTS_ABROAD[find_asked_kind(text, language)] if language else what_is_wanted(text)
    return Question(text, tuple(stems), weights, _find_choices(text), wants, language, context[:MAX_QUESTION_CHARS])


def search_queries(question: Question) -> list[str]:
    """What to ask a backend: the question itself, and each alternative it offers."""
    main = question.text[:MAX_QUERY_CHARS].strip() or "?"
    return list(dict.fromkeys([main, *(c[:MAX_QUERY_CHARS] for c in question.choices)]))


def narrow_queries(question: Question) -> list[str]:
    """What to ask a backend whose pages did not answer: the longest names of the question, and its rarest words together."""
    # A page that tells of something in passing is found by its name more easily than by everything that was asked about it.
    words = ContentWords(question.language)
    names = sorted((n for n in find_names(question.text) if words.stems(n)), key=len, reverse=True)
    rarest = sorted(question.weights, key=lambda stem: -question.weights[stem] * general_rarity(stem))[:MAX_SENTENCES]
    rare = " ".join(word for word in find_words(question.text) if not set(rarest).isdisjoint(words.stems(word)))
    return [query for query in dict.fromkeys((*names[:2], rare)) if query and query != question.text]


def extract_keywords(question: Question) -> str:
    """The question without its small words, for a backend that found nothing with them."""
    return drop_stop_words(question.text)[:MAX_QUERY_CHARS] or question.text[:MAX_QUERY_CHARS] or "?"


def what_is_wanted(text: str) -> Wants:
    """The kind of thing that would answer. The first question word decides: "what happens when" asks for no date."""
    if _HOW_TO.search(text):
        return "code" if _CODE_HINT.search(text) else ""
    nouns = {w.lower().removesuffix("s") for m in _WH.finditer(text) for w in m.group(1).split()}
    if nouns & CODE_NOUNS and (_CODE_HINT.search(text) or nouns & _PLAINLY_CODE):
        return "code"
    matches = [(match.start(), order, kind) for order, (kind, sign) in enumerate(_SIGNS) if (match := sign.search(text))]
    if matches or _QUESTION_WORD.search(text) or len(text.split()) > MAX_HEAD_WORDS:
        return min(matches)[2] if matches else ""
    return next((kind for kind, sign in _TOPICS if sign.search(text)), "")


def find_names(text: str) -> list[str]:
    """Runs of capitalised words, with the small words that stand inside names."""
    return [m.group().strip(" .,-'’").removesuffix("'s").removesuffix("’s") for m in _NAME.finditer(text)]


def _find_choices(text: str) -> tuple[str, ...]:
    """The two alternatives of "which is older, A or B?", or none."""
    if versus := _VERSUS.search(text):
        one, other = ((versus[1] or versus[3]).split(), (versus[2] or versus[4]).split())
        return " ".join(one), " ".join((*one[: max(0, len(one) - len(other))], *other))  # "git merge vs rebase"
    match = _OR.search(text) if re.search(r"\b(?:or|both|same|between|out of)\b", text) else None
    return (match.group(1).strip(), _AFTER_NAMES.sub("", match.group(2)).strip()) if match else ()


def split_question(question: Question) -> list[Question]:
    """The questions that one sentence asks; none where it asks one thing. A pronoun gives way to what it refers to."""
    # One that does not plainly ask several things stays whole: a subordinate clause has much the same words as a question.
    if question.language or question.choices or _IS_ONE.search(question.text):
        return []
    texts = [text.strip(" ,;?") for text in _JOINT.split(question.text)]
    if len(texts) < 2 or not all(map(_BEGINS.match, texts)) or any(map(_ENDS_OPEN.search, texts)):
        return []
    wholes, subjects = list[str](), list[str]()
    names = " ".join(name for name in find_names(texts[0].partition(" ")[2]) if name != "I")
    for text in texts:
        whole = name_subject(text, find_antecedent(text, subjects)) if has_pronoun(text) else text
        # "Who was the commander?" after the name of a mission is asked of that mission
        is_bare = wholes and whole == text and not has_pronoun(text) and not find_names(text.partition(" ")[2])
        wholes.append(f"{text} ({names})" if is_bare and names else whole)
        subjects.append(find_subject(re.split(r", (?:who|which|whose)\b", whole)[0]))
    parts = [read_question(f"{whole}?", question.context) for whole in wholes[: 2 * MAX_ALTERNATIVES]]
    return parts if all(part.stems for part in parts) else []


def list_queries(question: Question) -> list[str]:
    """What to ask a backend: the question itself, and each question in it."""
    return list(dict.fromkeys([*search_queries(question), *(part.text[:MAX_QUERY_CHARS] for part in split_question(question))]))
