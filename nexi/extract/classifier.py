"""How likely each block of a page is content: a sum of learned weights, and the cut that serves the whole page best.

Above sits `markup`; below, `features` names what speaks for and against a block, and `layout` finds the blocks. Each name has
one weight, so the judgement can be read off. The weights are learned by `evals/extraction`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import compress, pairwise
from math import exp
from pathlib import Path

import msgspec

from nexi.extract import features
from nexi.extract.layout import Layout, LayoutBlock
from nexi.extract.page_head import ARTICLE, GOODS, MAYBE_ARTICLE, OTHER, PageHead
from nexi.text.words import read_word_sets, word_set

LEAST, MOST = 0.15, 0.5  # where the cut may lie
MIN_CHANCE_OF_GOODS = 0.3  # a shop repeats much that is a little likely
ARTICLE_CUT = 0.65  # an article is of one piece: what is doubtful in it is a teaser, a byline, a comment
ARTICLE_SHARE = 0.5  # of the words kept otherwise; where a high cut leaves less, the page is no such article
MOSTLY = 0.7
SAME_TITLE = 0.8  # of the words of a heading that are in the page's title
PROSE_SHARE = 0.6  # of a page that is running text
BANNER = 0.3  # of the page's text; what has more is a wrapper
MENU = 200  # characters of links and nothing else
SOME_CODE = 3  # blocks of code that make a page documentation
MUCH_CODE = 10  # pieces of code in its sentences that do
MIN_CHANCE_IN_SECTION, SECTION_WORDS = 0.35, 120  # of a section that stands like its neighbours
MIN_CHANCE_BESIDE_CODE = 0.15  # of what is in a box with code and is likely no part of an article
FEW_LINES = 300  # characters
MIN_COPY_CHARS, PARAGRAPH_CHARS = 120, 80  # of a passage that no page repeats on purpose, and of a paragraph in it

DECLARED_SHARE = 0.5  # of a declared article that is found in the page, and of what would be kept
SURE_CHARS = 40  # a shorter text may stand in an article by chance
EDGE_CHARS = 60  # by which a paragraph is found though a link or a note in it differs
SHORT_CHARS = 120  # headings and items between the paragraphs of a declared article stay

TEASER_LINKED, MAX_TEASER_WORDS = 0.5, 30  # a line with less of it in links, or more words, says something itself
ONE_LINK = 0.95  # of a line that is nothing but a link
MIN_BIOGRAPHY_WORDS = 12

_WORD = re.compile(r"\w+")
_HEADINGS = word_set("h1 h2 h3 h4 h5 h6")
_SAID_AGAIN = ("pre", "table", "blockquote", "li", "dl")
# Windows of services for consent, clones of slides, what a form says once it is sent; of XenForo, phpBB, Invision and
# vBulletin what is known of who wrote a post, and signatures.
_FOREIGN = read_word_sets(__file__)["foreign"]
_SIGNATURE = re.compile(r"\bsig\d+\b")  # of phpBB
_ADVERTISEMENT = re.compile(r"(?<![a-z0-9])(?:ads?|advert(?:isements?|ising)?|adslots?|adsbygoogle|sponsored)(?![a-z0-9])")
_PLACEHOLDER = "lorem ipsum"
_TEASER = re.compile(
    r"\W*(?:(?:read|learn|see|check out|find out|explore|discover|watch|get|click|view|download|subscribe|sign up|join|follow"
    r"|shop|listen|browse|back to)\b|(?:related|also|next|recommended|more)\b[^:.]{0,20}:)",
    re.IGNORECASE,
)
_BIOGRAPHY = re.compile(r"\s(?:is|was|has|holds|writes|covers|works|joined|began|serves|lives|reports)\s")
_UNITS = word_set("table ul ol dl")
_TEXTS = word_set("h1 h2 h3 h4 article pre table")


@cache
def load_weights() -> Mapping[str, float]:
    """What was learned, read once."""
    return msgspec.json.decode(Path(__file__).with_name("weights.json").read_bytes(), type=dict[str, float])


@cache
def _load_scale() -> features.Scale:
    return scale_of(load_weights())


def scale_of(weights: Mapping[str, float]) -> features.Scale:
    """A scale of these weights; a name that was not learned weighs nothing."""
    return features.Scale(lambda names: sum([weights.get(name, 0.0) for name in names]))


def classify_blocks(layout: Layout, head: PageHead = PageHead()) -> list[bool]:  # noqa: B008  # immutable
    """For each block of the page, whether it is content; on a page of a few lines everything but a banner is."""
    head = _settle_genre(layout, head)
    banners = _find_banners(layout)
    if layout.chars < FEW_LINES:
        return [id(block.box) not in banners for block in layout.blocks]
    scores = _as_units(layout, features.PageFeatures(layout, _load_scale(), head).judge())
    chances = [1 / (1 + exp(-max(-30.0, min(30.0, score)))) for score in scores]
    threshold = _choose_threshold(layout.blocks, chances, head.genre)
    keeps = _keep_gaps(layout.blocks, [chance >= threshold for chance in chances])
    code_blocks = sum(block.box.tag == "pre" for block in layout.blocks)
    has_code = code_blocks >= SOME_CODE or (head.genre == OTHER and layout.root.code >= MUCH_CODE)
    if has_code:
        keeps = _keep_code_boxes(layout, keeps, chances, head)
    if head.genre == OTHER:
        keeps = _keep_sections(layout.blocks, keeps, chances)
    for n in range(len(keeps) - 2, -1, -1):  # a heading stays with the text that it stands over
        if not keeps[n] and keeps[n + 1] and layout.blocks[n].box.tag in _HEADINGS:
            keeps[n] = layout.blocks[n + 1].box.is_inside(layout.blocks[n].box.parent)
    if head.genre == ARTICLE and head.article:
        keeps = _keep_declared(layout.blocks, keeps, head.article)
    keeps = [
        keep and id(block.box) not in banners and not _is_aside(block, head)
        for keep, block in zip(keeps, layout.blocks, strict=True)
    ]
    return keeps if has_code else _drop_copies(layout.blocks, keeps)  # a manual says again what holds again


def _settle_genre(layout: Layout, head: PageHead) -> PageHead:
    """A page of running text at the address of an article is one, though it does not say so."""
    is_silent = head.genre in (OTHER, MAYBE_ARTICLE)
    is_prose = layout.root.paragraphs > PROSE_SHARE * max(1, layout.chars)
    return head._replace(genre=ARTICLE) if is_silent and head.is_at_article and is_prose else head


def _is_aside(block: LayoutBlock, head: PageHead) -> bool:
    """Whether a block is the text of a template, or in an article a line that leads to other pages or says who wrote it."""
    text, tag = block.text, block.box.tag
    if text[: len(_PLACEHOLDER)].lower() == _PLACEHOLDER and "lorem" not in head.title:
        return True
    if head.genre not in (ARTICLE, MAYBE_ARTICLE):
        return False
    if block.linked > TEASER_LINKED * len(text) and block.words <= MAX_TEASER_WORDS and tag in ("p", "div"):
        # A line that leads to another page says so, or is nothing but a link with words of its own.
        is_link = head.genre == ARTICLE and block.linked >= ONE_LINK * len(text) and "/" not in text
        if is_link or _TEASER.match(text):
            return True
    if head.authors and block.words >= MIN_BIOGRAPHY_WORDS:
        # The name of an author, and what they are or do.
        start = text[:80].lower()
        names = (name for author in head.authors for name in (author, author.partition(" ")[0]))
        if any(start.startswith(name) and _BIOGRAPHY.match(start, len(name)) for name in names):
            return True
    if tag != "h1":
        return False
    words = set(text.lower().split())
    return len(words & head.title) >= SAME_TITLE * len(words)  # the page has its title apart


def _drop_copies(blocks: list[LayoutBlock], keeps: list[bool]) -> list[bool]:
    """Leave out the second copy of a passage, which pages hold for other screens, and of a caption."""
    # A line, an item or a quotation may be said again on purpose; a run of blocks with a paragraph among them is not.
    places = [n for n, keep in enumerate(keeps) if keep]
    texts = [blocks[n].text for n in places]
    first: dict[str, int] = {}
    at = 0
    while at < len(places):
        before, size = first.setdefault(texts[at], at), 1
        while before + size < at and at + size < len(texts) and texts[before + size] == texts[at + size]:
            size += 1
        if before == at:
            at += 1
            continue
        run, run_texts = [blocks[n] for n in places[at : at + size]], texts[at : at + size]
        if "caption" in run[0].box.key or run[0].box.tag == "figcaption":
            is_copy = size == 1
        else:
            prose = max((len(block.text) for block in run if not block.box.is_within(*_SAID_AGAIN)), default=0)
            is_copy = prose >= PARAGRAPH_CHARS and len(set(run_texts)) > 1 and len("".join(run_texts)) >= MIN_COPY_CHARS
        if is_copy:
            for n in places[at : at + size]:
                keeps[n] = False
        at += size  # also past a run that stays, so that no page costs more than its length
    return keeps


def _keep_declared(blocks: list[LayoutBlock], keeps: list[bool], article: str) -> list[bool]:
    """What the page declares to be its article, with the short blocks between; unchanged where the two hardly agree."""
    texts = [article, *(block.text for block in blocks)]
    body, *texts = (f" {' '.join(_WORD.findall(text.lower()))} " for text in texts)  # their words alone
    inside = [len(text) > SURE_CHARS and (text[:EDGE_CHARS] in body or text[-EDGE_CHARS:] in body) for text in texts]
    matching_chars = sum(len(text) for text in compress(texts, inside))
    before = sum(len(text) for text in compress(texts, keeps))
    if matching_chars < DECLARED_SHARE * max(len(body), before) or not matching_chars:
        return keeps
    first, last = inside.index(True), len(inside) - inside[::-1].index(True)
    return [
        is_inside or (keep and first < n < last and (len(text) <= SHORT_CHARS or text in body))
        for n, (keep, is_inside, text) in enumerate(zip(keeps, inside, texts, strict=True))
    ]


def _find_banners(layout: Layout) -> set[int]:
    """The boxes that ask for consent, an address or money, or advertise; what services call their own parts goes too."""
    # One with code in it is a text about such things.
    banners: set[int] = set()
    for box in layout.boxes:
        kind = _kind_of_banner(box.key) if box.key else ""
        if (
            id(box.parent) in banners
            or kind == "foreign"
            or (kind and box.blocks and box.chars <= BANNER * layout.chars and box.node.query_selector("pre, code") is None)
        ):
            banners.add(id(box))
    return banners


@lru_cache(maxsize=20_000)
def _kind_of_banner(key: str) -> str:
    if not _FOREIGN.isdisjoint(key.split()) or ("signature" in key and _SIGNATURE.search(key) is not None):
        return "foreign"
    is_banner = any(name in key for name in ("cookie", "consent", "gdpr", "newsletter", "donate"))
    return "banner" if is_banner or (("ad" in key or "sponsored" in key) and _ADVERTISEMENT.search(key)) else ""


def _as_units(layout: Layout, scores: Sequence[float]) -> list[float]:
    """The cells of a table and the items of a plain list stand or fall together."""
    no_units: set[str] = set()
    for number, box in enumerate(layout.boxes):  # parents come before their children
        above = box.parent.unit if box.parent is not None else ""
        if not above:
            box.unit = f"{box.tag}{number}" if box.tag in _UNITS else ""
            continue
        box.unit = above
        if box.tag in _TEXTS or (box.tag == "p" and above.startswith("dl")):
            no_units.add(above)  # headings, code, or a table in a list or table: this holds a whole text and is no unit
    totals, words = defaultdict[str, float](float), Counter[str]()
    for block, score in zip(layout.blocks, scores, strict=True):
        totals[block.box.unit] += score * (block.words + 1)
        words[block.box.unit] += block.words + 1
    means = {unit: total / words[unit] for unit, total in totals.items() if unit and unit not in no_units}
    return [means.get(block.box.unit, score) for block, score in zip(layout.blocks, scores, strict=True)]


def _keep_gaps(blocks: list[LayoutBlock], keeps: list[bool]) -> list[bool]:
    """Code stays with the text beside it, and so does what stands between two kept blocks of the same box."""
    around = [False, *keeps, False]
    keeps = keeps.copy()
    for index, block in enumerate(blocks):
        before, keep, after = around[index : index + 3]
        if not keep and block.box.tag == "pre":
            keeps[index] = before or after
        elif not keep and before and after:
            keeps[index] = blocks[index - 1].box.parent is block.box.parent is blocks[index + 1].box.parent
    return keeps


def _keep_sections(blocks: list[LayoutBlock], keeps: list[bool], chances: list[float]) -> list[bool]:
    """A doubtful section of much prose stays where the section before it, with a heading of its kind in the same box, does."""
    starts = [n for n, block in enumerate(blocks) if block.box.tag in _HEADINGS]
    for (before, start), end in zip(pairwise(starts), [*starts[2:], len(blocks)]):  # noqa: B905 - no pairs, where one heading
        heading, body = blocks[start].box, range(start + 1, end)
        own = [n for n in body if blocks[n].box.is_inside(heading.parent) and chances[n] >= MIN_CHANCE_IN_SECTION]
        is_like = blocks[before].box.tag == heading.tag and blocks[before].box.parent is heading.parent
        is_long = sum(blocks[n].words for n in own) >= SECTION_WORDS
        if is_like and is_long and any(keeps[before:start]) and not any(keeps[n] for n in body):
            keeps = [keep or n == start or n in own for n, keep in enumerate(keeps)]
    return keeps


def _keep_code_boxes(layout: Layout, keeps: list[bool], chances: list[float], head: PageHead) -> list[bool]:
    """A box with code in it that is mostly content is all content: documentation keeps its notes, signatures and tables."""
    # Below an article it may also hold a form for comments, which is not.
    words_of_code = layout.root.code if head.genre == OTHER else 0
    boxes = [box for box in layout.boxes if box.blocks]
    words, kept_words, code = Counter[int](), Counter[int](), Counter[int]()  # by box, with those inside
    for block, keep in zip(layout.blocks, keeps, strict=True):
        if block.box.tag == "pre":
            code[id(block.box)] += 1
        else:
            words[id(block.box)] += block.words
            kept_words[id(block.box)] += block.words * keep
    for box in reversed(boxes):
        if box.parent is not None:
            for count in (words, kept_words, code):
                count[id(box.parent)] += count[id(box)]
    full: set[int] = set()
    for box in boxes:
        key = id(box)
        menu = box.tag in ("ul", "ol") and box.chars > MENU and box.linked > 0.8 * box.chars and not kept_words[key]
        has_code = code[key] >= SOME_CODE or (words_of_code and box.code >= MUCH_CODE and box.parent is not None)
        if not menu and (id(box.parent) in full or (has_code and kept_words[key] >= MOSTLY * words[key])):
            full.add(key)
    least = MIN_CHANCE_BESIDE_CODE if head.genre == ARTICLE else 0.0
    return [
        keep or (id(block.box) in full and (chance >= least or block.box.tag == "pre"))
        for block, keep, chance in zip(layout.blocks, keeps, chances, strict=True)
    ]


def _choose_threshold(blocks: list[LayoutBlock], chances: list[float], genre: str) -> float:
    """The chance from which on blocks are kept, so that precision and recall of the page are expected to balance."""
    pairs = sorted(((chance, block.words) for chance, block in zip(chances, blocks, strict=True)), reverse=True)
    expected_words = sum(chance * words for chance, words in pairs)
    best, threshold, right, kept_words = 0.0, MOST, 0.0, 0
    for chance, words in pairs:
        right += chance * words
        kept_words += words
        if kept_words and (balance := 2 * right / (kept_words + expected_words)) > best:
            best, threshold = balance, chance
    threshold = max(MIN_CHANCE_OF_GOODS if genre == GOODS else LEAST, min(MOST, threshold))
    kept_words = sum(words for chance, words in pairs if chance >= threshold)
    sure_words = sum(words for chance, words in pairs if chance >= ARTICLE_CUT)
    return ARTICLE_CUT if genre == ARTICLE and sure_words >= ARTICLE_SHARE * kept_words else threshold
