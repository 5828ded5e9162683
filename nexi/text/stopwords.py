"""The small words of languages: which words say nothing, and which language a text is in."""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = word_set(
    "a an and any are as at be been being but by can could did do does done for from had has have having he her hers him his "
    "how i if in into is it its itself may me might must my no nor not of off on onto or our ours out over own she should so "
    "some such than that the their theirs them then there these they this those through to too under until up upon us very "
    "was we were what when where which while who whom whose why will with within would you your yours "
    "'s s t don didn doesn isn wasn also am"
)
FUNCTION_WORDS = word_set(  # fewer than STOP: "not", "I" and "all" say something when a sentence is compared with a page
    "a an the and or of to in on at by for with from as is are was were be been it its that this he she they his her their "
    "has have had als auf aux bei con dans das del dem der des du ein eine einen einer eines el est et etait ete fue fur "
    "fut im ist la las le les los nach par para por que qui sa ses sind una und une von wird wurde wurden zu был была были "
    "было в до за и из к на от по с у"
)
MIN_SMALL_WORDS = 3  # that tell a language
SMALL_WORDS = {
    "English": word_set("the of and is are was were what how which does did with from that this it to by who when"),
    "German": word_set("der die das und ist sind war wie was welche mit von dem den ein eine nicht auf für wer wann"),
    "French": word_set("le les des et est sont était quel quelle comment avec du une dans pour sur qui quand au aux"),
    "Spanish": word_set("el los las y es son era qué cuál cómo con del una en por para quién cuándo está"),
    "Italian": word_set("il gli dei e è sono era quale come con della una nel per che chi quando di sulla"),
    "Portuguese": word_set("os as e é são era qual como com da uma no na por para quem quando não do"),
    "Dutch": word_set("de het en zijn was welke hoe met van een niet op voor wie wanneer dat naar wat"),
}


def language_of(text: str) -> str:
    """The language whose small words stand in a text of Latin letters; "" where none stands out."""
    words = re.findall(r"[^\W\d_]+", text[:20_000].casefold())
    counts = sorted(((sum(map(small.__contains__, words)), name) for name, small in SMALL_WORDS.items()), reverse=True)
    (most, name), (next_most, _) = counts[:2]
    return name if most >= MIN_SMALL_WORDS and most >= 2 * next_most else ""
