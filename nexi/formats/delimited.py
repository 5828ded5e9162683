"""Comma- and tab-separated values to a Markdown table.

Above sits `extract`; below, the standard library's reader and `writer`. The separator is the one that most lines of the
beginning share.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice

from nexi.extract import charset
from nexi.extract.words import Extracted
from nexi.extract.writer import MarkdownWriter
from nexi.formats.containers import broken_error, build_extracted

SAMPLE_LINES = 50
MAX_FIELD_CHARS = 1_000_000
_SEPARATORS = ",;\t|"


def read_csv(data: bytes, max_chars: int) -> Extracted:
    """The rows as a table. Raises FetchError."""
    text = charset.decode_body(data)
    lines = [line for line in islice(_lines_of(text), SAMPLE_LINES) if line.strip()]
    line_counts = {sign: sum(sign in line for line in lines) for sign in _SEPARATORS}
    separator = max(_SEPARATORS, key=lambda sign: (line_counts[sign], sum(line.count(sign) for line in lines)))
    return _write_rows(text, separator, max_chars)


def read_tsv(data: bytes, max_chars: int) -> Extracted:
    """The same where tabs separate the values. Raises FetchError."""
    return _write_rows(charset.decode_body(data), "\t", max_chars)


def _write_rows(text: str, separator: str, max_chars: int) -> Extracted:
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        with MarkdownWriter(max_chars) as writer:
            for row in csv.reader(_lines_of(text), delimiter=separator):
                writer.add_row(row)
    except csv.Error as error:
        raise broken_error(str(error)) from error
    return build_extracted(writer, {})


def _lines_of(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end].replace("\0", "")
        start = end
