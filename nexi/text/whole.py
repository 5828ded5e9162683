"""Whether a question is about a document as a whole ("summarise this", "what does it say?") and about nothing in it.

Pure; nothing below but the small words of languages. Such a question shares no word with its document, so no search finds it.
"""

from __future__ import annotations

import re

from nexi.text.languages import detect_language, strip_question_words
from nexi.text.words import FUNCTION_WORDS, SMALL_WORDS, STOP, find_words, read_word_sets

MAX_WORDS = 16
_URL = re.compile(r"https?://\S+")
_UNSPACED = re.compile(r"要約|要点|まとめ|概要|总结|總結|摘要|概括|概述|요약|สรุป")
_WORDS = read_word_sets(__file__)["words"]
_SMALL = STOP | FUNCTION_WORDS | frozenset().union(*SMALL_WORDS.values())


def asks_about_whole(question: str) -> bool:
    """Whether every word of a question is about the document it came with, or small."""
    text = _URL.sub(" ", question)
    if _UNSPACED.search(text):
        return len(text) <= 3 * MAX_WORDS
    words = [word.casefold() for word in find_words(strip_question_words(text, detect_language(text)))]
    are_general = all(word in _WORDS or word in _SMALL or word.isdigit() for word in words)
    return are_general and len(words) <= MAX_WORDS and not _WORDS.isdisjoint(words)
