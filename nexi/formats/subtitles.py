"""Subtitles (SRT and WebVTT) to paragraphs, each with the time at which it begins.

Above sits `extract`; below, `writer`. Cues that follow one another are one paragraph until a sentence ends or a pause comes.
"""

from __future__ import annotations

import re

from nexi.extract import charset
from nexi.extract.words import Extracted
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import broken_error, build_extracted

PARAGRAPH_CHARS = 400
PAUSE_S = 4

_TIMES = re.compile(r"\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}\s+-->\s+(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}")
_TAG = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,50})?\s+([^<>]{1,100})>")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", '."', '?"', '!"')


def read_subtitles(data: bytes, max_chars: int) -> Extracted:
    """What is said, with times. Raises FetchError."""
    text = charset.decode_body(data).replace("\r\n", "\n").replace("\r", "\n")
    with MarkdownWriter(max_chars) as writer:
        speech = _Speech(writer)
        for block in re.split(r"\n[ \t]*\n", text):
            lines = block.strip().split("\n")
            for place, line in enumerate(lines[:3]):
                if times := _TIMES.match(line):
                    speech.add_cue(times, " ".join(lines[place + 1 :]))
                    break
        speech.end_paragraph()
    if not speech.has_cues:
        raise broken_error("it has no times")
    return build_extracted(writer, {})


class _Speech:
    def __init__(self, writer: MarkdownWriter) -> None:
        self.has_cues = False
        self._writer = writer
        self._words: list[str] = []
        self._chars = self._begins = self._ends = 0

    def add_cue(self, times: re.Match[str], text: str) -> None:
        self.has_cues = True
        begins, ends = _to_seconds(*times.group(1, 2, 3)), _to_seconds(*times.group(4, 5, 6))
        words = " ".join(_TAG.sub("", _VOICE.sub(r"\1: ", text)).split())
        is_long = self._chars > PARAGRAPH_CHARS and "".join(self._words[-1:]).endswith(_SENTENCE_ENDS)
        if is_long or begins - self._ends > PAUSE_S:
            self.end_paragraph()
        self._ends = ends
        if not words or self._words[-1:] == [words]:  # a line that stays while the next one comes is written twice
            return
        if not self._words:
            self._begins = begins
        self._words.append(words)
        self._chars += len(words)
        if self._chars > 4 * PARAGRAPH_CHARS:
            self.end_paragraph()

    def end_paragraph(self) -> None:
        words, self._words, self._chars = self._words, [], 0
        if words:
            hours, minutes, seconds = self._begins // 3600, self._begins // 60 % 60, self._begins % 60
            self._writer.add_paragraph(f"[{hours:02}:{minutes:02}:{seconds:02}] {' '.join(words)}")


def _to_seconds(hours: str | None, minutes: str, seconds: str) -> int:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
