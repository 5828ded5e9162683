"""How raised text, lowered text and formulas are written in Markdown: one rule for every format, and how a page follows it.

Above sit the readers of pages and documents; below, a tree of resiliparse. An exponent is `10^23`, an index `H₂O` or `x_max`, a
formula TeX between dollar signs. A raised number that can be no exponent is the mark of a note: `[1]`. Sites keep a formula in
several forms of which one is shown (MathML, TeX, a drawing): the TeX is taken where there is one, else the MathML.
"""

from __future__ import annotations

import re
import string
from html import escape

from nexi.extract.layout import Node, Tree

MAX_TEX_CHARS = 20_000
MAX_UNIT_LETTERS = 4  # km, mol, sec; a longer word is not raised to a power
MAX_NOTE_DIGITS = 3
MAX_BEFORE = 40  # characters before a superscript that are looked at
MAX_FORMULA_NODES = 5_000
MAX_FORMULA_DEPTH = 60

_IN_TOKEN = f"{string.ascii_letters}{string.digits}.\\"
_LAST_WORD = re.compile(r"[^\W\d_]*$")
_ORDINALS = frozenset(("st", "nd", "rd", "th", "e", "er", "re", "ere", "ère", "eme", "ème", "nde", "o", "a", "os", "as"))
_SUBSCRIPTS = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_LOWERABLE = re.compile(r"[0-9+\-−=()]+")
_ONE_TOKEN = re.compile(r"[+\-−]?[\w.,∞°′″]+")
_SPACED_SIGNS = frozenset("=≈≤≥<>+−≠")
_TEXT_ELEMENTS = frozenset(("t", "mi", "mn", "mo", "mtext", "ms"))
_STYLE = re.compile(r"^\{?\s*\\(?:display|text|script)style\s+(.*?)\}?$", re.DOTALL)
# The element that holds every form of one formula, outermost first.
_WRAPPERS = ".mwe-math-element, mjx-container, .katex, .MathJax, .MathJax_Display, .MathJax_Preview"
_WRAPPER_NAMES = frozenset(name.lstrip(".") for name in _WRAPPERS.split(", "))
_NOTATION = f'{_WRAPPERS}, math, sup, sub, a[role="doc-noteref"]'
_TEX = 'annotation[encoding="application/x-tex"], annotation[encoding="application/x-latex"], annotation[encoding="LaTeX"]'
_TEX_SCRIPT = re.compile(
    r'<script\b[^>]{0,200}type\s*=\s*["\']?math/tex[^>]{0,100}>([^<]*+(?:<(?!/script)[^<]*+)*+)(?:</script\s*>|\Z)', re.I
)
_NOTE_CLASS = re.compile(r"reference|footnote|noteref|fn-?ref|cite", re.IGNORECASE)
_UNSEEN = frozenset({"annotation", "annotation-xml", "#comment"})
_FUNCTION_APPLICATION = re.compile("[\u2061-\u2064]")


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


def reveal_tex_scripts(html: str) -> str:
    """The page with the TeX that a script would draw put in the place of the script."""
    if "math/tex" not in html:
        return html
    return _TEX_SCRIPT.sub(lambda script: f"<span>{escape(write_formula(script[1]), quote=False)}</span>", html)


def write_notation(tree: Tree) -> None:
    """Replace formulas, superscripts and subscripts of a page by their text; they are searched for once."""
    nodes = list(tree.body.query_selector_all(_NOTATION))
    scripts = [node for node in nodes if node.tag in ("sup", "sub")]
    for wrapper in nodes:
        if wrapper.parent is None or not _WRAPPER_NAMES.intersection((wrapper.tag, *wrapper.class_name.split())):
            continue
        if text := _formula_text(wrapper):
            _replace_by_text(tree, wrapper, text)
        elif wrapper.matches(".MathJax_Preview, .MathJax, .MathJax_Display"):
            wrapper.decompose()  # drawn from a script that stands beside it
    for node in nodes:
        if node.parent is not None and node.tag == "math" and (text := _formula_text(node)):
            _replace_by_text(tree, node, text)
    for node in nodes:
        is_note = node.parent is not None and node.tag == "a" and node.parent.tag != "sup"
        if is_note and node.getattr("role") == "doc-noteref" and node.text.strip().isdecimal():
            _replace_by_text(tree, node, f"[{node.text.strip()}]")
    for node in scripts:
        if node.parent is None:
            continue
        text = " ".join(node.text.split())
        may_be_note = node.first_element_child is not None or node.hasattr("class")
        is_note = node.tag == "sup" and (
            text.startswith("[")
            or (may_be_note and (node.query_selector("a") is not None or _NOTE_CLASS.search(f"{node.class_name} {node.id}")))
        )
        if is_note:
            if len(text) <= MAX_NOTE_DIGITS and text.isdecimal():
                _replace_by_text(tree, node, f"[{text}]")
        elif node.first_element_child is None or not node.query_selector("sup, sub"):
            write = write_raised if node.tag == "sup" else write_lowered
            _replace_by_text(tree, node, write(_text_before(node), text))


def _text_before(node: Node) -> str:
    """The end of the text before a node in its block."""
    text = ""
    while node is not None and len(text) < MAX_BEFORE:
        sibling = node.prev
        while sibling is not None and len(text) < MAX_BEFORE:
            text = (sibling.value if sibling.tag == "#text" else sibling.text) + text
            sibling = sibling.prev
        node = node.parent
        if node is None or node.tag in ("p", "li", "td", "th", "div", "body", "dd", "dt", "h1", "h2", "h3", "h4"):
            break
    return text[-MAX_BEFORE:]


def _formula_text(node: Node) -> str:
    tex = node.query_selector(_TEX)
    if tex is not None and tex.text.strip():
        return write_formula(tex.text)
    root = node if node.tag == "math" else node.query_selector("math")
    if root is not None:
        if (alternative := root.getattr("alttext") or "").strip():
            return write_formula(alternative)
        allowance = [MAX_FORMULA_NODES]
        text = " ".join(_FUNCTION_APPLICATION.sub("", _linear(root, allowance, 0)).split())
        return text if allowance[0] > 0 else f"{text} …"
    picture = node.query_selector("img[alt]")
    return write_formula(picture.getattr("alt") or "") if picture is not None else ""


def _linear(node: Node, allowance: list[int], depth: int) -> str:
    """MathML on one line. `allowance` counts the elements that may still be read."""
    allowance[0] -= 1
    if node.tag == "#text":
        return str(node.value)
    if allowance[0] <= 0 or depth > MAX_FORMULA_DEPTH or node.tag in _UNSEEN:
        return ""
    parts = [_linear(child, allowance, depth + 1) for child in node.child_nodes if child.tag != "#text" or child.value.strip()]
    return join_formula(node.tag, parts)


def _replace_by_text(tree: Tree, node: Node, text: str) -> None:
    node.parent.insert_before(tree.create_text_node(text), node)
    node.decompose()
