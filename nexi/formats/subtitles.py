"""Subtitles (SRT and WebVTT) to paragraphs, each with the time at which it begins.

Above sits `extract`; below, `writer`. Cues that follow one another are one paragraph until a sentence ends or a pause comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nexi.extract import Extracted, charset
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import broken_error

PARAGRAPH_CHARS = 400
PAUSE_S = 4

_TIMES = re.compile(r"\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}\s+-->\s+(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}")
_TAG = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,50})?\s+([^<>]{1,100})>")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", '."', '?"', '!"')


def read_subtitles(data: bytes, max_chars: int) -> Extracted:
    """What is said, with times. Raises FetchError."""
    text = charset.decode_body(data).replace("\r\n", "\n").replace("\r", "\n")
    has_cues, begins, ends, words = False, 0, 0, list[str]()
    with MarkdownWriter(max_chars) as writer:
        for times, line in _list_cues(text):
            has_cues, start = True, _to_seconds(*times.group(1, 2, 3))
            chars = sum(map(len, words))
            is_long = chars > PARAGRAPH_CHARS and words[-1].endswith(_SENTENCE_ENDS)
            if is_long or chars > 4 * PARAGRAPH_CHARS or start - ends > PAUSE_S:
                _write_paragraph(writer, begins, words)
                words = []
            ends = _to_seconds(*times.group(4, 5, 6))
            if line and words[-1:] != [line]:  # a line that stays while the next one comes is written twice
                begins = begins if words else start
                words.append(line)
        _write_paragraph(writer, begins, words)
    if not has_cues:
        raise broken_error("it has no times")
    return writer.build_extracted({})


def _list_cues(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The times and the words of each cue; its number, and notes, may stand above the times."""
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.strip().split("\n")
        for place, line in enumerate(lines[:3]):
            if times := _TIMES.match(line):
                yield times, " ".join(_TAG.sub("", _VOICE.sub(r"\1: ", " ".join(lines[place + 1 :]))).split())
                break


def _write_paragraph(writer: MarkdownWriter, begins: int, words: list[str]) -> None:
    if words:
        writer.add_paragraph(f"[{begins // 3600:02}:{begins // 60 % 60:02}:{begins % 60:02}] {' '.join(words)}")


def _to_seconds(hours: str | None, minutes: str, seconds: str) -> int:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
