"""HTML to Markdown and what the page says of itself: boilerplate, bars of links and hidden text dropped, the main part chosen.

Above sits `extract`; below, resiliparse builds a tree and html-to-markdown writes the text. Pages are hostile: markup that
would make a tree explode is recognised first and read without one. Nothing here fetches, and nothing is remembered.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

import html_to_markdown as writer
from resiliparse.parse.html import HTMLTree

from nexi import urls
from nexi.extract import Extracted, classifier, markup_limits, notation, one_line, read_outline, table_spans, wikis
from nexi.extract.charset import undo_double_encoding
from nexi.extract.dates import read_page_dates
from nexi.extract.layout import PARAGRAPH, Box, Layout, Node, Tree, drop_nodes
from nexi.extract.page_head import GOODS, PageHead, find_head_parts, read_page_head
from nexi.text.words import word_set
from nexi.types import Picture

MAX_LINKS = 500
MAX_AUTHORS = 50
MAX_CAPTION = 200
MAX_CHARS = 10_000_000
MAX_DEPTH = 400  # boxes; browsers stop at 512 elements
ENOUGH_TEXT = 200  # characters; less is a notice: in a noscript element, a tab, or a page that a script shows
MARKUP_END = 60  # characters by which the end of a page is known again
FEW_LINKS, MOSTLY_LINKS = 0.4, 0.9  # of a text
SHELL_SHARE = 0.1  # of the text of a page; where no more stands out, the rest of the content is not there yet
LITTLE_TEXT = 20  # characters; less than this is no main part
MAX_NOTES = 999  # a marker has at most three digits
MAX_NOTE_CHARS = 2_000  # more is a section and no note
MAX_CLIMB = 3  # elements above the place a mark leads to, until one has the address
MAX_BAR_CHARS = 400
MAX_BAR_WORDS = 30
MAX_MENU_CHARS = 600
MIN_MENU_BLOCKS = 2
MIN_LINKED = 0.6  # of the text of a bar; more words than that are a sentence
MENU_LINKED = 0.95  # of the text of a menu

_MACHINERY = (
    "script, style, template, svg, canvas, iframe, object, embed, video, audio, dialog, button, select, input, textarea,"
    " img, picture, source"
)
# Of what these two find, `_is_boilerplate` and `_is_hidden` choose: a selector for each value takes twice as long.
_BOILERPLATE = "nav, footer, [role], [aria-modal=true], a.headerlink"
_HIDDEN = '[hidden]:not([id^="S:"]), [aria-hidden=true], [style]'
_FRAME_ROLES = frozenset((
    "navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "complementary", "menu", "menubar", "toolbar",
))  # fmt: skip
_HIDING_STYLES = ("display:none", "display: none", "visibility:hidden", "visibility: hidden")
# Tabs and accordions: a reader opens them with a click.
_FOLDED = re.compile(r"accordion|collaps|faq|tab-?pan|tabs?__content|toggle__content|expand", re.IGNORECASE)
_FURNITURE = "aside, form"
_NOTES = re.compile(r"note|admonition|callout|doc-", re.IGNORECASE)  # an aside of the text itself
_LAYOUT_TABLE = "[role=presentation], [role=none], [class*=layout]"
_CELLS = frozenset({"td", "th", "tr"})  # an empty one keeps the others in their columns
_INDENTED = frozenset({"pre", "table", "ul", "ol", "dl"})
_KEPT_ROOTS = frozenset({"html", "body", "main", "article"})
_INVISIBLE = re.compile(r"<(script|style|template|noscript)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_FRAME = re.compile(r"<iframe\b[^<>]{0,20000}>", re.IGNORECASE)
_PREFORMATTED = re.compile(r"(<pre\b[^<]*+(?:<(?!/pre>)[^<]*+)*+(?:</pre>)?+)", re.IGNORECASE)
_TAG = re.compile(r"<[/!?a-zA-Z][^>]{0,20000}>?")
_CODE_LANGUAGE = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|highlight(?!-source))-|brush:\s*)([a-z][\w+#]*)", re.IGNORECASE
)
_DEED = re.compile(r"creativecommons\.org/licenses/([a-z-]+)/(\d\.\d)")
_EXCLAIMED_LINK = re.compile(r"(?<=\w)!(?=\[[^\[\]\n]{1,500}\]\()")
_NO_LANGUAGE = frozenset({"default", "none", "notranslate", "plain", "plaintext", "text"})
_MARK = re.compile(r"\W{0,3}(?P<number>[1-9]\d{0,2})\W{0,3}|[*†‡§]{1,3}")
_MENUS = word_set("menu mainmenu submenu")
_LINK_KINDS = {
    "previous": "p", "prev": "p", "previous page": "p", "prev page": "p", "previous chapter": "p", "previous topic": "p",
    "next": "n", "next page": "n", "next chapter": "n", "next topic": "n", "up": "u", "home": "h", "contents": "h",
    "table of contents": "h", "index": "h", "top": "h",
}  # fmt: skip
_PROSE_TAGS = "p, pre, h1, h2, h3, h4, dl, blockquote"
_GRIDS = word_set("tr tbody table ul ol nav")  # titles of pages may stand in them beside the links


def read_html(html: str, url: str, cites_notes: bool = False) -> Extracted:
    """Text, links and metadata of a page; with `cites_notes` its footnotes are citations, and a list names their addresses."""
    html, truncated = _bound_markup(html)
    if markup_limits.is_hostile(html):
        return Extracted(text=_plain_words(html), truncated=truncated)
    tree = _build_tree(html)
    base = _base_url(tree, url)
    hrefs = _find_hrefs(tree.body)
    citations = _cite_notes(tree, base) if cites_notes else {}  # before marks become notation
    notation.write_notation(tree)
    parts = find_head_parts(tree)
    about = _About(tree, parts)
    linked_data = "".join(part.text for part in parts if part.tag == "script")
    published, updated = read_page_dates(tree, html, about.meta, linked_data, url, about.language)
    head = read_page_head(tree, parts, url)
    facts = wikis.take_facts(tree, html)
    _drop_hidden(tree)
    layout = _lay_out(tree)
    if layout.deepest > MAX_DEPTH:  # more than judging and writing can afford
        text = _plain_words(html)
    else:
        _keep_content(_drop_navigation(layout), head)
        del layout  # the boxes of a large page take much memory, and so does writing it
        wikis.place_facts(tree, facts)
        text, hrefs = _write_tree(tree, base), [*_find_hrefs(tree.body), *hrefs]
    if not text.strip():
        text = head.article  # a script would write the text
    if citations:
        sources = "\n".join(f"[{number}] {address}" for number, address in sorted(citations.items()))
        text = f"{text.rstrip()}\n\nSources:\n{sources}\n"
    headings, code_languages = read_outline(text)
    return Extracted(
        title=about.find_title(),
        text=text,
        language=about.language,
        author=about.author,
        published=published,
        updated=updated,
        description=about.first_value("description", "og:description"),
        links=_absolute_links(base, hrefs),
        headings=headings,
        code_languages=code_languages,
        site=about.first_value("og:site_name", "citation_journal_title", "application-name"),
        picture=about.find_picture(base),
        truncated=truncated,
    )


def read_whole(html: str) -> Extracted:
    """All that is shown, with nothing chosen: for documents, which have no furniture."""
    html, truncated = _bound_markup(html)
    if markup_limits.is_hostile(html):
        return Extracted(text=_plain_words(html), truncated=truncated)
    tree = _build_tree(html)
    notation.write_notation(tree)
    if _lay_out(tree).deepest > MAX_DEPTH:
        return Extracted(text=_plain_words(html), truncated=truncated)
    _drop_matches(tree.body, _HIDDEN, len(tree.body.text), share=0.5, is_match=_is_hidden)
    return Extracted(text=_write_tree(tree, ""), truncated=truncated)


def _bound_markup(html: str) -> tuple[str, bool]:
    """What a reader could see of the page, as far as its tags can be afforded; and whether its end is lost by that."""
    visible = markup_limits.remove_invisible(notation.reveal_tex_scripts(undo_double_encoding(html[:MAX_CHARS])))
    if "\0" in visible:  # looking for it costs less than replacing none
        visible = visible.replace("\0", "")
    # The rest of the page would be inside a frame that is never closed.
    frames = visible.count("<iframe")
    if frames and frames > visible.count("</iframe"):
        visible = _FRAME.sub("", visible)
    markup = markup_limits.bound_markup(visible)
    return markup, len(html) > MAX_CHARS or visible[-MARKUP_END:] != markup[-MARKUP_END:]


def _build_tree(html: str) -> Tree:
    tree = HTMLTree.parse(html)
    if tree.body is None:  # a frameset takes the place of the body; such a page has no text of its own
        return HTMLTree.parse("<body></body>")
    wikis.drop_marks(tree, html)
    return tree


def _cite_notes(tree: Tree, base: str) -> dict[int, str]:
    """Put [n] in the place of every mark whose source is known, and take out its note; return the addresses by number."""
    # For a page that is a report somebody wants checked. A mark is a short number or sign that links to a place on the same
    # page, or to the source itself.
    numbers: dict[str, int] = {}
    notes: list[Node] = []
    marks = [(link, mark) for link in tree.body.query_selector_all("a[href]") if (mark := _MARK.fullmatch(link.text.strip()))]
    mark_numbers = {int(mark["number"]) for _, mark in marks if mark["number"]}
    for link, mark in marks:
        url, note = _find_source(tree, link.getattr("href") or "", base)
        if not url or link.parent is None:
            continue
        if url not in numbers:
            own = int(mark["number"] or 0)
            number = own if own and own not in numbers.values() else max((*mark_numbers, *numbers.values()), default=0) + 1
            if number > MAX_NOTES:
                continue
            numbers[url] = number
        link.parent.insert_before(tree.create_text_node(f"[{numbers[url]}]"), link)
        link.decompose()
        notes += [note] if note is not None else []
    drop_nodes(notes)
    return {number: url for url, number in numbers.items()}


def _find_source(tree: Tree, href: str, base: str) -> tuple[str, Node]:
    """The address that a link leads to, "" for none; by way of a note, which is returned too, where it names a place here."""
    if not href.startswith("#"):
        return _web_address(href, base), None
    node = tree.document.get_element_by_id(href[1:])
    for _ in range(MAX_CLIMB):
        if node is None or node.tag in ("body", "html", "ol", "ul", "table") or len(node.text) > MAX_NOTE_CHARS:
            break
        links = (_web_address(link.getattr("href") or "", base) for link in node.query_selector_all("a[href]"))
        if url := next(filter(None, links), "") or next(iter(urls.find_urls(node.text)), ""):
            return url, node
        node = node.parent
    return "", None


def _web_address(href: str, base: str) -> str:
    with suppress(ValueError):
        url = urls.join(base, href) if base else href
        return url if urls.is_web_url(url) and not href.startswith("#") else ""
    return ""


def _drop_hidden(tree: Tree) -> None:
    """Drop what is not shown, and what says itself that it is no content."""
    body = tree.body
    drop_nodes(body.query_selector_all("script, style, template"))  # their text is none of the page's
    size = _drop_matches(body, _HIDDEN, len(body.text), share=0.5, is_match=_is_hidden)
    # Forums that are programs give readers without scripts the whole thread; other pages a line or an image.
    noscripts = list(body.query_selector_all("noscript"))
    inside = sum(len(node.text) for node in noscripts)
    has_content = inside > ENOUGH_TEXT and inside > 0.6 * size
    for node in noscripts:
        if node.parent is None:
            continue
        if has_content:
            _replace_node(node, tree.create_element("div"))
        else:
            size -= len(node.text)
            node.decompose()
    size = _drop_matches(body, _BOILERPLATE, size, share=0.6, is_match=_is_boilerplate)
    _drop_matches(body, _FURNITURE, size, share=0.3)


def _is_boilerplate(node: Node) -> bool:
    return (
        node.getattr("role") in _FRAME_ROLES
        or node.tag in ("nav", "footer")
        or node.getattr("aria-modal") == "true"
        or (node.tag == "a" and "headerlink" in node.class_name.split())
    )


def _is_hidden(node: Node) -> bool:
    if style := node.getattr("style"):
        style = style.lower()
        if any(rule in style for rule in _HIDING_STYLES):
            return True
    # React streams parts of a page hidden under ids such as S:1, and a script shows them.
    return node.getattr("aria-hidden") == "true" or (node.hasattr("hidden") and not node.id.startswith("S:"))


def _drop_matches(
    body: Node, selector: str, chars: int, *, share: float, is_match: Callable[[Node], bool] = lambda _: True
) -> int:
    """Drop what a selector finds in a text of so many characters, but no wrapper of much of the page; how many are left."""
    nodes = list(filter(is_match, body.query_selector_all(selector)))
    most = share * chars
    # A site that has each post in a form of its own has the whole thread in forms.
    tags_left = ("form",) if sum(len(node.text) for node in nodes if node.tag == "form") > most else ()
    for node in nodes:
        if node.parent is None or node.tag in _KEPT_ROOTS or node.tag in tags_left:
            continue
        size = len(node.text)
        names = f"{node.class_name} {node.id} {node.parent.class_name}"
        # A hidden text that waits for a click; a menu that does is mostly links.
        if (
            selector == _HIDDEN
            and size >= ENOUGH_TEXT
            and (node.getattr("role") == "tabpanel" or _FOLDED.search(names))
            and sum(len(link.text) for link in node.query_selector_all("a")) < FEW_LINKS * size
        ):
            for name in ("hidden", "aria-hidden", "style"):
                if node.hasattr(name):
                    node.delattr(name)
        elif size <= most and (node.tag != "aside" or not _NOTES.search(f"{node.getattr('role')} {node.getattr('class')}")):
            node.decompose()
            chars -= size
    return chars


def _replace_node(node: Node, block: Node) -> None:
    """Put `block` in the place of `node`, with its children."""
    while (child := node.first_child) is not None:
        block.append_child(child)
    node.parent.insert_before(block, node)
    node.decompose()


def _lay_out(tree: Tree) -> Layout:
    """The boxes of a page, and a space between numbers that only a style keeps apart: 2025 and 11 min are not 202511 min."""
    layout = Layout(tree.body)
    for node in layout.touching:
        node.parent.insert_before(tree.create_text_node(" "), node)
    return layout


def _drop_navigation(layout: Layout) -> Layout:
    """Drop bars of links to the pages before and after, and menus of nothing but links; the page as it is then."""
    # "Prev" and "Next" are known by their words, "Up" and "Home" by standing beside them.
    bars: list[tuple[Node, Box | None]] = []
    for block in layout.blocks:
        if block.linked and block.words <= MAX_BAR_WORDS and ("rev" in block.text or "ext" in block.text):
            for link in block.box.node.query_selector_all("a[href]"):
                if (bar := _find_bar(link)) is not None:
                    bars.append((bar, next((box for box in block.box.climb() if box.node == bar), None)))
    last: Box | None = None
    for box in layout.boxes:
        if (
            "menu" in box.key
            and not (last and box.is_inside(last))
            and box.tag in ("div", "ul")
            and box.blocks >= MIN_MENU_BLOCKS
            and box.chars <= MAX_MENU_CHARS
            and box.linked >= MENU_LINKED * box.chars
            and not _MENUS.isdisjoint(box.key.split())
            and box.node.query_selector(_PROSE_TAGS) is None
        ):
            bars.append((box.node, box))
            last = box
    drop_nodes(bar for bar, _ in bars)
    boxes = [box for _, box in bars if box is not None]
    if len(boxes) < len(bars):  # one of them was a part of a line
        return Layout(layout.root.node)
    layout.drop_boxes(boxes)
    return layout


def _kind_of_link(link: Node) -> str:
    return _LINK_KINDS.get(" ".join(link.text.split()).strip(" «»‹›←→<>|[]()").lower(), "")


def _find_bar(link: Node) -> Node:
    """The largest box around a link to another page that holds such links and their titles alone."""
    if link.parent is None or _kind_of_link(link) not in ("p", "n"):
        return None
    bar, node = None, link.parent
    while node is not None and node.tag and node.tag not in _KEPT_ROOTS:
        size = len(node.text.strip())
        if size > MAX_BAR_CHARS or node.query_selector(_PROSE_TAGS) is not None:
            break
        is_bar = (bar is not None and size <= len(bar.text.strip()) + 3) or node.tag in _GRIDS
        if not is_bar:
            chars = len("".join(node.text.split()))
            is_bar = sum(len("".join(a.text.split())) for a in node.query_selector_all("a")) >= MIN_LINKED * chars
        if is_bar:
            kinds = set(map(_kind_of_link, node.query_selector_all("a[href]"))) - {""}
            bar = node if len(kinds) > 1 else bar
        elif bar is not None:
            break
        node = node.parent
    return bar


def _write_tree(tree: Tree, url: str) -> str:
    """The rest of a page as Markdown, once it has the elements that the writer knows."""
    body = tree.body
    drop_nodes(body.query_selector_all(_MACHINERY))
    for table in body.query_selector_all("table"):
        # Tables that only place things on the page become plain blocks; as Markdown tables they would be one line.
        is_layout = table.matches(_LAYOUT_TABLE) or table.query_selector("h1, h2, h3, table")
        if not is_layout or (table.query_selector("th") and not table.query_selector("table")):
            continue
        rows = [row for part in table.child_nodes for row in (part.child_nodes if part.tag != "tr" else [part])]
        for cell in [cell for row in rows if row.tag == "tr" for cell in row.child_nodes if cell.tag in ("td", "th")]:
            block = tree.create_element("div")
            while (child := cell.first_child) is not None:
                block.append_child(child)
            table.parent.insert_before(block, table)
        table.decompose()
    table_spans.open_spans(tree)
    for quote in body.query_selector_all("blockquote"):
        # A quotation of nothing but code, a list or a table was written to indent it.
        parts = _solid_children(quote)
        if len(parts) == 1 and parts[0].tag == "div":
            parts = _solid_children(parts[0])
        if parts and quote.parent is not None and all(node.tag in _INDENTED for node in parts):
            _replace_node(quote, tree.create_element("div"))
    for pre in body.query_selector_all("pre"):
        # The language goes where the converter looks for it; sites name it on the block, its code, or a wrapper.
        parent = pre.parent
        for node in (pre.query_selector("code"), pre, parent, parent.parent if parent is not None else None):
            match = _CODE_LANGUAGE.search(node.getattr("class", "") or "") if node is not None and node.tag else None
            if match and match[1].lower() not in _NO_LANGUAGE:
                pre.setattr("class", f"language-{match[1].lower()}")
                break
    for link in body.query_selector_all("a"):
        # A link has words and a page; one without words goes, and one to a place on this page or a script is its words.
        if link.parent is None:
            continue
        if not link.text.strip():
            link.decompose()
            continue
        if link.hasattr("title"):
            link.delattr("title")
        if (link.getattr("href") or "").lstrip().lower().startswith(("#", "javascript:")):
            link.delattr("href")
    return _to_markdown(body.html, url)


def _solid_children(node: Node) -> list[Node]:
    return [child for child in node.child_nodes if child.tag != "#text" or child.value.strip()]


def _keep_content(layout: Layout, head: PageHead) -> None:
    keeps = classifier.classify_blocks(layout, head)
    if sum(len(block.text) for block, keep in zip(layout.blocks, keeps, strict=True) if keep) < LITTLE_TEXT:
        # Nothing stands out: all that does not call itself the frame of the page.
        keeps = [not block.box.is_within("nav", "footer") for block in layout.blocks]
    # A script would write the content where there is a menu, or a few short lines in the long page of a shop.
    sizes = [len(block.text) for block, keep in zip(layout.blocks, keeps, strict=True) if keep]
    if not sizes or layout.chars < classifier.FEW_LINES:
        is_shell = layout.root.linked > (MOSTLY_LINKS if sizes else FEW_LINKS) * layout.chars
    else:
        is_little = sum(sizes) < min(ENOUGH_TEXT, SHELL_SHARE * layout.chars) and max(sizes) < PARAGRAPH
        is_shell = head.genre == GOODS and is_little
    if is_shell:
        while (child := layout.root.node.first_child) is not None:
            child.decompose()
        return
    for block, keep in zip(layout.blocks, keeps, strict=True):
        block.box.kept += keep
    for box in reversed(layout.boxes):
        if box.parent is not None:
            box.parent.kept += box.kept
    for box in layout.boxes:
        if not box.kept and box.parent is not None and box.parent.kept and (box.blocks or box.tag not in _CELLS):
            box.node.decompose()
    for block, keep in zip(layout.blocks, keeps, strict=True):
        if not keep and block.box.kept:
            for node in block.nodes:
                node.decompose()


def _base_url(tree: Tree, url: str) -> str:
    tag = tree.document.query_selector("base[href]") if url else None
    if tag is not None:
        with suppress(ValueError):
            return urls.join(url, tag.getattr("href") or "")
    return url


def _find_hrefs(node: Node) -> list[str]:
    return list(dict.fromkeys(link.getattr("href") or "" for link in node.query_selector_all("a[href]")))[: 4 * MAX_LINKS]


def _absolute_links(base: str, hrefs: list[str]) -> tuple[str, ...]:
    """Links as URLs that could be fetched, each once, in their order."""
    links: dict[str, None] = {}
    for href in dict.fromkeys(hrefs) if base else ():
        with suppress(ValueError):
            link = urls.join(base, href).partition("#")[0]
            if len(links) < MAX_LINKS and link.startswith(("http://", "https://")):
                links[link] = None
    links.pop(base.partition("#")[0], None)
    return tuple(links)


def _to_markdown(html: str, url: str) -> str:
    # Line ends of the source are spaces outside of code: a sentence stays on one line.
    parts = _PREFORMATTED.split(html)
    parts[::2] = (part.replace("\n", " ") for part in parts[::2])
    source = "".join(parts)
    try:
        text = writer.convert(source, _conversion_options(url)).content or ""
        # Most of the words may be missing: a page hides its main part until a script shows it.
        is_hiding = len(text) < ENOUGH_TEXT and ("hidden" in html or "none" in html)
        if is_hiding and 2 * len(text) < len(_plain_words(html)):
            text = writer.convert(source, _conversion_options(url, shows_hidden=True)).content or ""
    except writer.ConversionError:
        return _plain_words(html)
    if "![" in text:  # no picture is written: this is a link after an exclamation mark
        text = _EXCLAIMED_LINK.sub("! ", text)
    return text.strip() or _plain_words(html)


def _conversion_options(url: str, *, shows_hidden: bool = False) -> writer.ConversionOptions:
    """Every choice as a value of its type: a name would be looked up for every page, at some cost."""
    return writer.ConversionOptions(
        extract_metadata=False,
        preprocessing=writer.PreprocessingOptions(enabled=False, preset=writer.PreprocessingPreset.STANDARD),
        autolinks=False,
        bullets="-",
        skip_images=True,
        compact_tables=True,
        expand_abbreviations=False,
        include_blockquote_citations=False,
        base_url=url or None,
        heading_style=writer.HeadingStyle.ATX,
        list_indent_type=writer.ListIndentType.SPACES,
        highlight_style=writer.HighlightStyle.NONE,
        whitespace_mode=writer.WhitespaceMode.NORMALIZED,
        newline_style=writer.NewlineStyle.SPACES,
        code_block_style=writer.CodeBlockStyle.BACKTICKS,
        inline_data_media=writer.InlineDataMedia.KEEP,
        hidden_content=writer.HiddenContent.ALL if shows_hidden else writer.HiddenContent.DROP,
        url_escape_style=writer.UrlEscapeStyle.ANGLE,
        link_style=writer.LinkStyle.INLINE,
        output_format=writer.OutputFormat.MARKDOWN,
        tier_strategy=writer.TierStrategy.AUTO,
    )


def _plain_words(html: str) -> str:
    """The words alone, for markup that no parser should be given."""
    text = entities.unescape(_TAG.sub("\n", _INVISIBLE.sub(" ", html)))
    return "\n".join(line for line in (" ".join(raw.split()) for raw in text.splitlines()) if line)


class _About:
    """What the head of a page says; first come, first served."""

    def __init__(self, tree: Tree, parts: Sequence[Node]) -> None:
        self._tree = tree
        self.meta: dict[str, str] = {}
        scholars: list[str] = []
        for tag in parts:
            if tag.tag != "meta" or not tag.hasattr("content"):
                continue
            name = tag.getattr("name") or tag.getattr("property") or tag.getattr("itemprop") or tag.getattr("http-equiv") or ""
            content = one_line(tag.getattr("content") or "")
            self.meta.setdefault(name.lower(), content)
            if content and name.lower() == "citation_author":
                scholars.append(content)  # scholarly pages have a tag for each author
        name = self.first_value("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author")
        self.author = one_line("; ".join(scholars[:MAX_AUTHORS])) or ("" if name.startswith(("http:", "https:")) else name)
        root = tree.document.query_selector("html")
        language = (root.getattr("lang") if root is not None else "") or self.first_value("content-language", "og:locale")
        self.language = str(language).replace("_", "-")[:35].strip()

    def find_title(self) -> str:
        if title := one_line(self._tree.title or "") or self.first_value("og:title"):
            return title
        heading = self._tree.document.query_selector("h1")
        return one_line(heading.text) if heading else ""

    def find_picture(self, base: str) -> Picture | None:
        """The picture that the page gives to those who link to it."""
        try:
            address = urls.join(base, self.first_value("og:image:secure_url", "og:image", "twitter:image"))
        except ValueError:
            return None
        if address == base or not address.startswith(("https://", "http://")):
            return None
        link = self._tree.document.query_selector("[rel~=license][href]")
        terms = one_line((link.getattr("href") or "") if link is not None else "")
        if deed := _DEED.search(terms):
            licence = f"CC {deed[1].upper()} {deed[2]}"
        elif "creativecommons.org/publicdomain/" in terms:
            licence = "CC0" if "/zero/" in terms else "public domain"
        else:
            licence = self.first_value("dcterms.license", "dc.rights", "dcterms.rights", "copyright")[:MAX_CAPTION]
        return Picture(address, self.first_value("og:image:alt", "twitter:image:alt")[:MAX_CAPTION], licence)

    def first_value(self, *names: str) -> str:
        return next((self.meta[name] for name in names if self.meta.get(name)), "")
