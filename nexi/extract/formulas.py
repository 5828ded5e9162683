"""The formulas, superscripts and subscripts of an HTML page become text before anything is dropped or written.

Above sits `markup`; below, `notation` says how each is written. Sites keep a formula in several forms of which one is shown
(MathML beside a picture, TeX beside MathML, a drawing beside both): the TeX is taken where there is one, else the MathML.
"""

from __future__ import annotations

import re
from html import escape

from nexi.extract import notation
from nexi.extract.layout import Node, Tree

MAX_FORMULA_NODES = 5_000
MAX_FORMULA_DEPTH = 60

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


def reveal_tex_scripts(html: str) -> str:
    """The page with the TeX that a script would draw put in the place of the script."""
    if "math/tex" not in html:
        return html
    return _TEX_SCRIPT.sub(lambda script: f"<span>{escape(notation.write_formula(script[1]), quote=False)}</span>", html)


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
            if len(text) <= notation.MAX_NOTE_DIGITS and text.isdecimal():
                _replace_by_text(tree, node, f"[{text}]")
        elif node.first_element_child is None or not node.query_selector("sup, sub"):
            write = notation.write_raised if node.tag == "sup" else notation.write_lowered
            _replace_by_text(tree, node, write(_text_before(node), text))


def _text_before(node: Node) -> str:
    """The end of the text before a node in its block."""
    text = ""
    while node is not None and len(text) < notation.MAX_BEFORE:
        sibling = node.prev
        while sibling is not None and len(text) < notation.MAX_BEFORE:
            text = (sibling.value if sibling.tag == "#text" else sibling.text) + text
            sibling = sibling.prev
        node = node.parent
        if node is None or node.tag in ("p", "li", "td", "th", "div", "body", "dd", "dt", "h1", "h2", "h3", "h4"):
            break
    return text[-notation.MAX_BEFORE :]


def _formula_text(node: Node) -> str:
    tex = node.query_selector(_TEX)
    if tex is not None and tex.text.strip():
        return notation.write_formula(tex.text)
    root = node if node.tag == "math" else node.query_selector("math")
    if root is not None:
        if (alternative := root.getattr("alttext") or "").strip():
            return notation.write_formula(alternative)
        allowance = [MAX_FORMULA_NODES]
        text = " ".join(_FUNCTION_APPLICATION.sub("", _linear(root, allowance, 0)).split())
        return text if allowance[0] > 0 else f"{text} …"
    picture = node.query_selector("img[alt]")
    return notation.write_formula(picture.getattr("alt") or "") if picture is not None else ""


def _linear(node: Node, allowance: list[int], depth: int) -> str:
    """MathML on one line. `allowance` counts the elements that may still be read."""
    allowance[0] -= 1
    if node.tag == "#text":
        return str(node.value)
    if allowance[0] <= 0 or depth > MAX_FORMULA_DEPTH or node.tag in _UNSEEN:
        return ""
    parts = [_linear(child, allowance, depth + 1) for child in node.child_nodes if child.tag != "#text" or child.value.strip()]
    return notation.join_formula(node.tag, parts)


def _replace_by_text(tree: Tree, node: Node, text: str) -> None:
    node.parent.insert_before(tree.create_text_node(text), node)
    node.decompose()
