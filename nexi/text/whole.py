"""Whether a question is about a document as a whole ("summarise this", "what does it say?") and about nothing in it.

Pure; nothing below but the small words of languages. Such a question shares no word with its document, so no search finds it.
"""

from __future__ import annotations

import re

from nexi.text.languages import detect_language, strip_question_words
from nexi.text.stopwords import FUNCTION_WORDS, SMALL_WORDS, STOP, word_set
from nexi.text.words import find_words

MAX_WORDS = 16
_URL = re.compile(r"https?://\S+")
_UNSPACED = re.compile(r"要約|要点|まとめ|概要|总结|總結|摘要|概括|概述|요약|สรุป")
_WORDS = word_set(
    "summarise summarize summarised summarized summary summaries sum tldr tl dr recap overview gist abstract outline digest "
    "key main important central most points point ideas idea messages message takeaways takeaway findings finding facts "
    "short brief briefly quickly simple concise please give tell show write make get want need explain describe read about "
    "say says said tells state states contain contains content contents inside topic subject all whole entire everything "
    "file files document documents doc docs pdf text texts page pages article articles paper papers report reports note notes "
    "attached attachment attachments letter email mail book chapter website site link here words sentences sentence bullet "
    "résume résumer résumez résumé resume resumer sommaire synthèse fichier fichiers document texte page pages article rapport "
    "dit disent parle quoi parlent contient principaux principales points idées essentiel ce cette ces cet ça cela moi fais "
    "faire fasse fass fassen zusammen zusammenfassen zusammenfassung zusammengefasst überblick inhalt kernaussagen wichtigsten "
    "punkte datei dateien dokument dokumente text texte seite artikel bericht bitte mir gib steht darin drin worum geht diese "
    "dieser dieses diesen diesem sagt kurz "
    "resume resumir resumen resúmeme resúmelo síntesis archivo archivos documento documentos texto página artículo informe "
    "dice dicen trata contiene principales puntos ideas este esta esto estos estas favor "
    "riassumi riassunto riassumere sintesi questo questa file documento testo pagina articolo dice parla "
    "resuma resumo síntese arquivo ficheiro este esta isto diz fala "
    "vat samenvatting samenvatten samen bestand dit deze tekst artikel staat erin "
    "لخص تلخيص ملخص هذا هذه الملف الوثيقة النص المستند"
)
_SMALL = STOP | FUNCTION_WORDS | frozenset().union(*SMALL_WORDS.values())


def asks_about_whole(question: str) -> bool:
    """Whether every word of a question is about the document it came with, or small."""
    text = _URL.sub(" ", question)
    if _UNSPACED.search(text):
        return len(text) <= 3 * MAX_WORDS
    words = [word.casefold() for word in find_words(strip_question_words(text, detect_language(text)))]
    are_general = all(word in _WORDS or word in _SMALL or word.isdigit() for word in words)
    return are_general and len(words) <= MAX_WORDS and not _WORDS.isdisjoint(words)
