"""What nexi knows of languages beside English: small words, question words, months, stemmers, and which one a text is in.

Pure data and functions of general language, used where a question is read and its pages are compared with it. English needs no
entry: it is what everything falls back to.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from nexi.text.stopwords import STOP, word_set

__all__ = ["LANGUAGES", "detect_language", "find_asked_kind", "name_language", "strip_question_words"]


class Language(Struct, frozen=True):
    """One language: `stop` are its small and question words, `asks` the question words by what they ask for."""

    name: str
    stemmer: str
    stop: frozenset[str]
    letters: str = ""
    asks: tuple[tuple[str, str], ...] = ()
    months: frozenset[str] = frozenset()


LANGUAGES = {
    "de": Language(
        "German", "german",
        word_set("der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird wurde "
                 "wurden hat haben hatte in im am an auf aus bei mit nach von vom zu zum zur für über unter durch um "
                 "als wie was wer wen wem wann wo wohin woher warum welche welcher welches welchen welchem viele "
                 "viel sein seine ihr ihre ihren sich nicht auch es er sie man gibt heißt statt"),
        "ßäöü",
        (("date", r"wann|(?:in )?welche[nm] (?:jahr|monat)"), ("person", r"wer|wen|wem|wie heißt"),
         ("place", r"wo|wohin|woher"),
         ("number", r"wie (?:viele?|lang|hoch|groß|alt|weit|tief|schwer)")),
        word_set("januar februar märz april mai juni juli august september oktober november dezember"),
    ),
    "fr": Language(
        "French", "french",
        word_set("le la les l un une des du de d et ou est sont était étaient a ont été en dans au aux à par pour "
                 "sur avec que qui quoi quel quelle quels quelles quand où comment combien pourquoi se s ce cette "
                 "ces son sa ses il elle ils elles on ne pas plus y t n c j m qu t-il t-elle appelle"),
        "èêœçù",
        (("date", r"quand|(?:en )?quel(?:le)? (?:année|mois|date)"), ("person", r"qui|comment s['’]appelle"), ("place", r"où"),
         ("number", r"combien|quelle est la (?:longueur|hauteur|taille|population)|à quelle altitude")),
        word_set("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    ),
    "es": Language(
        "Spanish", "spanish",
        word_set("el la los las un una unos unas y o es son era fue fueron ha han de del en a al por para con que "
                 "qué quién quiénes cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas se su sus lo "
                 "le les no más está están tiene llama"),
        "ñ¿¡",
        (("date", r"cuándo|en qué (?:año|mes)"), ("person", r"quién(?:es)?|cómo se llama"), ("place", r"a?dónde"),
         ("number", r"cuánt[oa]s?|qué (?:altura|longitud|tamaño)")),
        word_set("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
    ),
    "it": Language(
        "Italian", "italian",
        word_set("il lo la i gli le un uno una l d e ed o è sono era fu furono ha hanno di del della dello dei degli "
                 "delle in nel nella a al alla da dal dalla per con su sul sulla che chi cosa quale quali quando "
                 "dove come quanto quanta quanti quante perché si suo sua non più primo chiama trova"),
        "òìùè",
        (("date", r"quando|in quale (?:anno|mese)"), ("person", r"chi|come si chiama"), ("place", r"dove"),
         ("number", r"quant[oaie]")),
        word_set("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
    ),
    "pt": Language(
        "Portuguese", "portuguese",
        word_set("o a os as um uma uns umas e ou é são era foi foram tem têm de do da dos das em no na nos nas ao à "
                 "por pelo pela para com que quem qual quais quando onde como quanto quanta quantos quantas se seu "
                 "sua não mais está fica chama"),
        "ãõç",
        (("date", r"quando|em que (?:ano|mês)"), ("person", r"quem|como se chama"), ("place", r"onde"),
         ("number", r"quant[oa]s?|qual é a (?:altura|extensão)")),
        word_set("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
    ),
    "nl": Language(
        "Dutch", "dutch",
        word_set("de het een en of is zijn was waren wordt werd werden heeft hebben had in op aan bij met naar van "
                 "voor door over uit om als dat die wat wie wanneer waar waarheen waarom welke welk hoe hoeveel zich "
                 "niet ook er hij zij haar hun naartoe heet"),
        "ĳ",
        (("date", r"wanneer|in welke? (?:jaar|maand)"), ("person", r"wie|hoe heet"), ("place", r"waar(?:heen)?"),
         ("number", r"hoeveel|hoe (?:lang|hoog|groot|oud|ver|diep|zwaar)")),
        word_set("januari februari maart april mei juni juli augustus september oktober november december"),
    ),
    "pl": Language(
        "Polish", "polish",
        word_set("i a w we z ze na do od po o u za przez dla jest są był była było byli ma mają się to ten ta te "
                 "tego tej jak jaki jaka jakie jaką jakim jakiego kto kogo kiedy gdzie dokąd skąd dlaczego ile ilu "
                 "co czym czego który która które nie jego jej roku został została"),
        "łąęśżźćńó",
        (("date", r"kiedy|w (?:którym|jakim) (?:roku|miesiącu)"), ("person", r"kto|kogo"), ("place", r"gdzie|dokąd|skąd"),
         ("number", r"ile|ilu|jaką (?:długość|wysokość)")),
        word_set("stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia "
                 "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień "
                 "listopadzie"),
    ),
    "tr": Language(
        "Turkish", "turkish",
        word_set("ve veya bir bu şu o da de ile için ne neyle kim kimi kimdir kime nerede nereye nereden nerededir "
                 "hangi kaç kaçtır kaçıncı nasıl neden ki mi mı mu mü en çok olarak zaman var vardır"),
        "ğışİöüç",
        (("date", r"ne zaman|hangi (?:yıl|ay)\w*"), ("person", r"kim(?:dir|i)?"), ("place", r"nere\w+"), ("number", r"kaç\w*")),
        word_set("ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık"),
    ),
    "ru": Language(
        "Russian", "russian",
        word_set("и в во на с со к ко по за из у о об от до для что кто кого где куда откуда когда как какой какая "
                 "какое какие какова какую каком почему сколько который которая это этот эта он она оно они его её "
                 "их не был была было были есть году года"),
        "",
        (("date", r"когда|в каком (?:году|месяце)"), ("person", r"кто|кого"), ("place", r"где|куда|откуда"),
         ("number", r"сколько|какова (?:длина|высота)")),
        word_set("января февраля марта апреля мая июня июля августа сентября октября ноября декабря ноябре январе "
                 "марте октябре"),
    ),
    "ar": Language(
        "Arabic", "arabic",
        word_set("في من إلى على عن مع هو هي هذا هذه ذلك تلك التي الذي ما ماذا متى أين كيف كم لماذا أي بأي هل كان "
                 "كانت لأول عام سنة و أو ثم كل بلغ يبلغ"),
        "",
        (("date", r"متى|في أي (?:عام|سنة|شهر)"), ("person", r"من"), ("place", r"(?:إلى )?أين"), ("number", r"كم")),
        word_set("يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر"),
    ),
    "zh": Language(
        "Chinese", "", frozenset(), "",
        (("date", r"什么时候|何时|哪一?年|几月|几号"), ("person", r"谁|何人"), ("place", r"哪里|哪儿|何处|什么地方"),
         ("number", r"多少|几|多[长高大远重深]")),
    ),
    "ja": Language(
        "Japanese", "", frozenset(), "",
        (("date", r"いつ|何[年月日]"), ("person", r"誰|だれ"), ("place", r"どこ"),
         ("number", r"何(?:人|メートル|キロ|個|歳)|どのくらい|いくつ")),
    ),
}  # fmt: skip
_LETTER_WEIGHT = 2
MANY_WORDS = 12  # in which one that is said again and again, or a letter of a name, tells no language
# One consonant is a word where it is cut short, as in l'eau; else it is a unit or a name.
_WORD = re.compile(r"[^\W\d_]{2,}|[^\W\d_](?=['’])|[^\W\d_bcdfghjklmnpqrstvx]")
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")
_ARABIC = re.compile("[\u0600-\u06ff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_CHINESE_SMALL = re.compile(
    "什么时候|什么地方|什么|何时|哪里|哪儿|哪个|哪一?年|谁|多少|多[长高大远重深]|几月|[几吗呢是的了在由有于和与于]"
)
_JAPANESE_SMALL = re.compile(
    "(?:したの|たの|の)は|(?:ました|ます|でした|です)か?|どのくらい|いつ|どこ|どの|だれ|いくつ|[誰何？?]"
    "|(?<=[\u30a0-\u30ff\u3400-\u9fff])(?:では|には|[はがをにでのへと])(?=[\u30a0-\u30ff\u3400-\u9fff『「\\s]|$|ど|い|だ)"
)


@lru_cache(maxsize=512)
def detect_language(text: str) -> str:
    """The language of a text as a code, "en" among them; "" where it is unclear."""
    sample = text[:4000]
    scripts = {name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS}
    if scripts["kana"] and scripts["kana"] + scripts["han"] > scripts["latin"]:
        return "ja"
    most = max(scripts, key=lambda name: scripts[name])
    if not scripts[most]:
        return ""
    if most != "latin":
        return {"han": "zh", "ar": "ar", "ru": "ru", "kana": "ja"}[most]
    words = _WORD.findall(sample.replace("İ", "i").lower())
    counts = {"en": _count_signs(words, STOP)}
    for code, language in LANGUAGES.items():
        if language.stop and language.stemmer not in ("russian", "arabic"):
            marks = sum(1 for letter in set(language.letters) if letter in sample or letter in sample.lower())
            counts[code] = _count_signs(words, language.stop, marks)
    first, second, *_ = sorted(counts.values(), reverse=True)
    return max(counts, key=lambda code: counts[code]) if first > second else ""


def _count_signs(words: list[str], stop: frozenset[str], letters: int = 0) -> int:
    """How much speaks for a language: its small words, and how many of its own letters; many words need two signs of it."""
    small = [word for word in words if word in stop]
    is_enough = len(words) < MANY_WORDS or len(set(small)) + letters > 1
    return len(small) + _LETTER_WEIGHT * letters if is_enough else 0


_SCRIPTS = (("kana", _KANA), ("han", _HAN), ("ar", _ARABIC), ("ru", _CYRILLIC), ("latin", _LATIN))


def name_language(code: str) -> str:
    """The English name of a language."""
    return LANGUAGES[code].name if code in LANGUAGES else "English"


def strip_question_words(text: str, language: str) -> str:
    """A question without the words that only ask, in a language that puts no spaces between words."""
    if language not in ("zh", "ja"):
        return text
    pieces = (_CHINESE_SMALL if language == "zh" else _JAPANESE_SMALL).sub(" ", text).split()
    return " ".join(piece for piece in pieces if len(piece) > 1)  # one character alone is no pair


def find_asked_kind(text: str, language: str) -> str:
    """What the question words of a language ask for: "date", "person", "place", "number", or nothing."""
    words = LANGUAGES.get(language)
    if words is None:
        return ""
    edge = "" if language in ("zh", "ja") else r"\b"
    low = text.replace("İ", "i").lower()
    order = ("date", "number", "place", "person")  # "what year" also asks with the word for "what"
    asks = sorted(words.asks, key=lambda ask: order.index(ask[0]))
    kinds = ((kind, re.search(f"{edge}(?:{pattern}){edge}", low)) for kind, pattern in asks)
    return next((kind for kind, match in kinds if match), "")
