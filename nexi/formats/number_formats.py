"""How a sheet shows a number: thousands, decimals, signs of currencies, brackets of losses and units.

Above sits `sheets`; below, nothing. Fractions, powers of ten and formats with conditions are not known here: numbers in them
are shown plainly, and so is what has no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

MAX_CODE_CHARS = 500
MAX_DECIMALS = 12

BUILT_IN_FORMATS = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    **dict.fromkeys((37, 38), "#,##0;(#,##0)"),
    **dict.fromkeys((39, 40), "#,##0.00;(#,##0.00)"),
    **dict.fromkeys((41, 42), '#,##0;(#,##0);"-"'),
    **dict.fromkeys((43, 44), '#,##0.00;(#,##0.00);"-"'),
}  # the codes that a workbook uses by number; 42 and 44 have the currency of the machine that shows them

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+)|(?P<sign>.)",
    re.DOTALL,
)
_SIGNS = frozenset((*"$€£¥+-−() :'", None))


class _Section(Struct, frozen=True):
    before: str
    after: str
    digits: str

    def show(self, number: float) -> str:
        if not self.digits:
            return self.before.strip()
        whole, _, decimals = self.digits.rstrip(",").partition(".")
        thousands = len(self.digits) - len(self.digits.rstrip(","))
        places = min(len(decimals), MAX_DECIMALS)
        text = f"{abs(number) / 1000**thousands:{',' if ',' in whole else ''}.{places}f}"
        if optional := len(decimals) - len(decimals.rstrip("#")):
            text = text[:-optional] + text[-optional:].rstrip("0") if places == len(decimals) else text
            text = text.rstrip(".")
        return f"{self.before}{text.zfill(whole.count('0')) if ',' not in whole else text}{self.after}".strip()


class _NumberFormat(Struct, frozen=True):
    """The parts of a format: for numbers above zero, below it, and for zero."""

    sections: tuple[_Section, ...]

    def show(self, number: float) -> str:
        if number == 0 and len(self.sections) > 2:
            return self.sections[2].show(number)
        if number < 0 and len(self.sections) > 1:
            return self.sections[1].show(number)
        text = self.sections[0].show(number)
        return f"-{text}" if number < 0 and any(digit in text for digit in "123456789") else text


def parse_number_format(code: str) -> Callable[[float], str] | None:
    """What shows a number in the format of this code; None for one that is plain, or in a way that is not known here."""
    code = code[:MAX_CODE_CHARS]
    # At its semicolons, but not at those inside quotation marks.
    codes = re.findall(r'((?:"[^"]*"|\\.|[^;"\\])*)(?:;|$)', code)
    sections = [_parse_section(part) for part in codes[: min(3, code.count(";") + 1)]]
    parts = [section for section in sections if section]
    return _NumberFormat(tuple(parts)).show if len(parts) == len(sections) and parts[0].digits else None


def _parse_section(code: str) -> _Section | None:
    words, digits = ["", ""], ""
    for token in _TOKEN.finditer(code):
        if token["digits"]:
            if digits:
                return None  # a fraction, a power of ten, or a number in parts
            digits = token["digits"]
        elif token["sign"] not in _SIGNS or any(condition in (token["bracket"] or "") for condition in "<>="):
            return None
        else:
            words[bool(digits)] += token["quoted"] or token["escaped"] or token["currency"] or token["sign"] or ""
    return _Section(words[0], words[1], digits)
