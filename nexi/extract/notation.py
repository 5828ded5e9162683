"""How raised text, lowered text and formulas are written in Markdown: one rule for every format.

Above sit the readers of pages and documents; below, nothing. An exponent is `10^23`, an index `H₂O` or `x_max`, a formula TeX
between dollar signs. A raised number that can be no exponent is the mark of a note: `[1]`.
"""

from __future__ import annotations

import re
import string

MAX_TEX_CHARS = 20_000
MAX_UNIT_LETTERS = 4  # km, mol, sec; a longer word is not raised to a power
MAX_NOTE_DIGITS = 3
MAX_BEFORE = 40  # characters before a superscript that are looked at

_IN_TOKEN = f"{string.ascii_letters}{string.digits}.\\"
_LAST_WORD = re.compile(r"[^\W\d_]*$")
_ORDINALS = frozenset(("st", "nd", "rd", "th", "e", "er", "re", "ere", "ère", "eme", "ème", "nde", "o", "a", "os", "as"))
_SUBSCRIPTS = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_LOWERABLE = re.compile(r"[0-9+\-−=()]+")
_ONE_TOKEN = re.compile(r"[+\-−]?[\w.,∞°′″]+")
_SPACED_SIGNS = frozenset("=≈≤≥<>+−≠")
_TEXT_ELEMENTS = frozenset(("t", "mi", "mn", "mo", "mtext", "ms"))
_STYLE = re.compile(r"^\{?\s*\\(?:display|text|script)style\s+(.*?)\}?$", re.DOTALL)


def write_raised(before: str, text: str) -> str:
    """What a superscript becomes after the text before it."""
    text, before = " ".join(text.split()), before[-MAX_BEFORE:]
    if not text or text.startswith("[") or not before.strip():
        return text
    base = _LAST_WORD.findall(before)[0]
    if text.isdecimal():
        is_note = before[-1] in ".,;:!?\"'”’»" or len(base) > MAX_UNIT_LETTERS
        return f"[{text}]" if is_note and len(text) <= MAX_NOTE_DIGITS else f"^{text}"
    if text.isalpha():
        is_ordinal = before[-1].isdigit() and text.lower() in _ORDINALS
        is_abbreviation = len(text) > 1 and base[:1].isupper()
        if is_ordinal or is_abbreviation or len(base) > MAX_UNIT_LETTERS:
            return text
    if not any(char.isalnum() for char in text):
        return text  # a star or a dagger
    return f"^{text}" if _ONE_TOKEN.fullmatch(text) else f"^({text})"


def write_lowered(before: str, text: str) -> str:
    """What a subscript becomes after the text before it."""
    text = " ".join(text.split())
    if not text or not before.strip() or before[-1].isspace():
        return text
    if _LOWERABLE.fullmatch(text):
        return text.translate(_SUBSCRIPTS)
    return f"_{text}" if _ONE_TOKEN.fullmatch(text) else f"_({text})"


def write_formula(tex: str) -> str:
    """TeX between dollar signs, without the wrapper that sets its size; "" for none. A very long one ends in an ellipsis."""
    if len(tex) > MAX_TEX_CHARS:
        tex = f"{tex[:MAX_TEX_CHARS].rstrip(_IN_TOKEN)} …"  # a part of a number would be another number
    tex = " ".join(tex.split())
    if style := _STYLE.match(tex):
        tex = style[1].strip()
    return f"${tex}$" if tex else ""


def join_formula(element: str, parts: list[str]) -> str:
    """The parts of one element of MathML or of Office's own markup on one line: (4/3)πr^3."""
    match element, parts:
        case (("mfrac" | "f"), [numerator, denominator]):
            return f"({_group(numerator)}/{_group(denominator)})"
        case (("msup" | "mover" | "sSup"), [base, exponent]):
            return f"{base}^{_group(exponent)}"
        case (("msub" | "munder" | "sSub"), [base, index]):
            return f"{base}_{_group(index)}"
        case (("msubsup" | "munderover" | "sSubSup"), [base, index, exponent]):
            return f"{base}_{_group(index)}^{_group(exponent)}"
        case "mroot", [radicand, degree]:
            return f"root({degree}, {radicand})"
        case "rad", [degree, radicand] if degree:
            return f"root({degree}, {radicand})"
        case (("msqrt" | "rad"), _):
            return f"√({''.join(parts)})"
        case "mo", [sign] if sign.strip() in _SPACED_SIGNS:
            return f" {sign.strip()} "
        case "mtr" | "mlabeledtr", _:
            return f"{', '.join(parts)}; "
        case _:
            return "".join(parts)


def _group(text: str) -> str:
    text = text.strip()
    return text if len(text) == 1 or _ONE_TOKEN.fullmatch(text) else f"({text})"


class FormulaBuilder:
    """The text of a formula in MathML or Office's own markup, from its elements as they go by."""

    def __init__(self) -> None:
        self._open: list[tuple[str, list[str]]] = []

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def start(self, element: str) -> None:
        self._open.append((element, []))

    def text(self, text: str) -> None:
        if self._open and self._open[-1][0] in _TEXT_ELEMENTS:
            self._open[-1][1].append(text)

    def end(self) -> str | None:
        """Close an element; the whole formula where it was the outermost, else None."""
        element, parts = self._open.pop()
        text = join_formula(element, parts)
        if not self._open:
            return " ".join(text.split())
        if not element.endswith("Pr") and not element.startswith("annotation"):
            self._open[-1][1].append(text)
        return None
