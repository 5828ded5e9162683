"""What a page says it is: an article, a thread, something for sale, or nothing of the kind; and the words of its title.

Above sit `features` and `markup`; below, a tree of resiliparse. Comments under an article are no part of it and the posts of
a thread are, so blocks are judged by what the page is. Pages say it in Open Graph, schema.org and the classes of WordPress.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from nexi.extract.layout import Node, Tree
from nexi.text.words import word_set

ARTICLE, MAYBE_ARTICLE, THREAD, GOODS, OTHER = "abfpo"

MAX_HEAD_PARTS = 2_000
MAX_TITLE_CHARS = 300
MAX_LINKED_DATA_CHARS = 200_000

_PARTS = 'meta[content], [itemtype], script[type="application/ld+json"]'
_BODY = re.compile(r'"articleBody"\s*:\s*("(?:[^"\\]|\\.)*+")')
_AUTHOR = re.compile(r'"author"\s*+:\s*+(?:\[\s*+)?\{[^{}]{0,500}?"name"\s*+:\s*+"([^"\\]{3,60})"')
_TAG = re.compile(r"<[^<>]*>")
_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"([A-Za-z]+)"')
_POST = re.compile(r"\bsingle-post\b|\bpost-template|\bblog-item\b|\bpostid-")
_DATES = word_set("article:published_time pubdate datepublished")
# A folder of posts, a year, or a last part that is a headline: "ten-tips-for-tomatoes".
_ARTICLE_PATH = re.compile(
    r"/(?:blogs?|posts?|p|articles?|news|stor(?:y|ies)|essays?|thoughts|insights?|archives?|(?:19|20)\d\d)/|(?:[-_][^-_/]*){3,}/?$"
)
_THREADS = word_set("DiscussionForumPosting QAPage")
_ARTICLES = word_set(
    "Article NewsArticle BlogPosting TechArticle ReportageNewsArticle OpinionNewsArticle AnalysisNewsArticle LiveBlogPosting"
    " Blog ReviewNewsArticle ScholarlyArticle MedicalScholarlyArticle Recipe HowTo"
)
_GOODS = word_set("Product Offer AggregateOffer ItemList CollectionPage ProductGroup")


class PageHead(NamedTuple):
    """The genre of a page as one letter, its title and `authors` in lower case, and whether its address is an article's."""

    genre: str = OTHER
    title: frozenset[str] = frozenset()
    description: str = ""
    article: str = ""
    authors: frozenset[str] = frozenset()
    is_at_article: bool = False


def find_head_parts(tree: Tree) -> Sequence[Node]:
    """The elements that describe a page, in order; found once, since each search goes over the whole tree."""
    return cast(Sequence[Node], tree.document.query_selector_all(_PARTS))


def read_page_head(tree: Tree, parts: Sequence[Node], url: str) -> PageHead:
    """Read it before anything is dropped from the tree."""
    meta, types, authors, article = dict[str, str](), set[str](), set[str](), ""
    for node in islice(parts, MAX_HEAD_PARTS):
        if kind := node.getattr("itemtype"):
            types.add(kind.rpartition("/")[2])
        elif node.tag == "script":
            linked_data = node.text[:MAX_LINKED_DATA_CHARS]
            types.update(_TYPE.findall(linked_data))
            if not article and '"articleBody"' in linked_data and (match := _BODY.search(linked_data)):
                with suppress(ValueError):
                    article = _TAG.sub(" ", html.unescape(json.loads(match[1], strict=False)))
            authors.update(map(str.lower, _AUTHOR.findall(linked_data)))
        else:
            name = node.getattr("property") or node.getattr("name") or node.getattr("itemprop") or ""
            meta.setdefault(name.lower(), node.getattr("content") or "")
    title = (meta.get("og:title") or tree.title or "")[:MAX_TITLE_CHARS].lower()
    description = meta.get("description") or meta.get("og:description") or ""
    open_graph, body_class = meta.get("og:type", "").strip().lower(), (tree.body.getattr("class") or "").lower()
    if types & _THREADS:
        genre = THREAD
    elif types & _ARTICLES or not _DATES.isdisjoint(meta) or _POST.search(body_class):
        genre = ARTICLE
    elif open_graph == "article":
        genre = MAYBE_ARTICLE
    else:
        genre = GOODS if types & _GOODS or open_graph.startswith("product") else OTHER
    authors.add(meta.get("author", "").lower())
    people = frozenset(author for author in authors if len(author.split()) in (2, 3))
    return PageHead(
        genre, frozenset(title.split()), description, article, people, _ARTICLE_PATH.search(urlsplit(url).path) is not None
    )
