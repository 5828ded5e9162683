"""Pages of MediaWiki, as Wikipedia has them: facts of the infobox kept, marks for editors and boxes of other articles dropped.

Above sits `markup`; below, a tree of resiliparse. A wiki is known by its software and not by its host. The facts stand after
the first paragraph as a list of fields: in the page they stand beside it, and in its source before it.
"""

from __future__ import annotations

import re

from nexi.extract.layout import Node, Tree, drop_nodes

MAX_ROWS = 400
MIN_FACTS = 2
MAX_FACTS = 80
MAX_LABEL_CHARS = 60
MAX_VALUE_CHARS = 600
MIN_LEAD_CHARS = 60

_SIGN = "mw-parser-output"  # the class of every text that MediaWiki writes; looking for it costs less than looking in the tree
_MARKS = (
    ".mw-editsection, .Inline-Template, sup.update, .asof-tag, .mw-jump-link, .mw-indicators, .mw-empty-elt, .shortdescription,"
    " #siteSub, #contentSub, #jump-to-nav, #catlinks, #toc, .toc"
)
_OTHER_ARTICLES = (
    "table.sidebar, div.sidebar, .vertical-navbox, .navbox, .navbox-styles, .navbar, .hatnote, .ambox, .metadata,"
    " .sistersitebox, .side-box, .portalbox, .portal-bar, .authority-control, .mbox-small"
)
_INFOBOX = "table.infobox, table.infobox_v2, div.infobox, div.infobox_v3, aside.portable-infobox"
_UNSEEN = "style, script, sup.reference, .noprint, .navbar, [style*='display:none' i], [style*='display: none' i]"
_PARTS = "li, br, .plainlist > div"
_MARK = re.compile(
    r"\[\s*(?:edit(?: source)?|update|(?:better )?\w+ needed|not in citation given"
    r"|(?:by |according to |to )?(?:who|whom|when|where|which|why|how)\s*\?|dubious.{0,20}|failed verification)\s*\]",
    re.IGNORECASE,
)
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-z]|note \d+)\]")
_SEPARATORS = re.compile(r"\s*(?:;\s*)+")


def drop_marks(tree: Tree, html: str) -> None:
    """Drop what a wiki shows to editors, and its boxes of links to other articles; on other pages nothing."""
    if _SIGN not in html:
        return
    for node in tree.body.query_selector_all(f"{_MARKS}, {_OTHER_ARTICLES}"):
        if node.parent is not None and not node.matches(_INFOBOX):
            node.decompose()
    for node in tree.body.query_selector_all("sup, h1 > span, h2 > span, h3 > span, h4 > span"):
        if node.parent is not None and _MARK.fullmatch(node.text.strip()):
            node.decompose()


def take_facts(tree: Tree, html: str) -> list[str]:
    """The fields of the first infobox as `Field: value`; the box itself goes."""
    box = tree.body.query_selector(_INFOBOX) if _SIGN in html else None
    if box is None or len(box.query_selector_all("tr > th + td, tr > td + td, .pi-data")) < MIN_FACTS:
        return []
    drop_nodes(box.query_selector_all(_UNSEEN))
    for node in box.query_selector_all(_PARTS):
        node.parent.insert_before(tree.create_text_node("; "), node)
    facts = list[str]()
    for panel in [] if box.tag == "table" else list(box.query_selector_all(".pi-data"))[:MAX_ROWS]:
        label, value = panel.query_selector(".pi-data-label"), panel.query_selector(".pi-data-value")
        if label is not None and value is not None:
            facts += _write_fact(_read_text(label), _read_text(value))
    section = ""
    for row in [] if facts else list(box.query_selector_all("tr"))[:MAX_ROWS]:
        cells = [cell for cell in row.child_nodes if cell.tag in ("th", "td")]
        label = _read_text(cells[0]) if cells else ""
        if len(cells) == 1 and cells[0].tag == "th":
            section = label
        if len(cells) != 2 or cells[1].query_selector("table") is not None:
            continue
        if label[:1] in "•·-–" and section:  # "Population", and below it "• Total"
            label = f"{section}, {label.lstrip('•·-– ')}"
        elif cells[0].tag == "th":
            section = label
        facts += _write_fact(label, _read_text(cells[1]))
    if facts:
        box.decompose()
    return facts[:MAX_FACTS]


def _write_fact(label: str, value: str) -> list[str]:
    label = label.rstrip(" :")
    return [f"{label}: {value}"] if 0 < len(label) <= MAX_LABEL_CHARS and 0 < len(value) <= MAX_VALUE_CHARS else []


def _read_text(node: Node) -> str:
    return _SEPARATORS.sub("; ", _NOTE.sub("", " ".join(node.text.split()))).strip("; ")


def place_facts(tree: Tree, facts: list[str]) -> None:
    """Put the facts after the first paragraph, or at the end where there is none."""
    if not facts:
        return
    list_node = tree.create_element("ul")
    for fact in facts:
        item = tree.create_element("li")
        item.append_child(tree.create_text_node(fact))
        list_node.append_child(item)
    lead = next((node for node in tree.body.query_selector_all("p") if len(node.text.strip()) >= MIN_LEAD_CHARS), None)
    if lead is None or lead.next is None:
        (lead.parent if lead is not None else tree.body).append_child(list_node)
    else:
        lead.parent.insert_before(list_node, lead.next)
