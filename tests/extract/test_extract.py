"""Pages of every kind become Markdown with their metadata; nothing makes extraction fail."""

from __future__ import annotations

import codecs

import pytest

from nexi.extract import Extracted
from nexi.extract.text import to_markdown
from nexi.formats import extract, media_type, sniff_type

URL = "https://site.test/a/page"


def markdown(body: str) -> str:
    return to_markdown(f"<html><body>{body}</body></html>", URL)


def test_structure_survives_as_markdown() -> None:
    html = """
    <h1>Title</h1>
    <p>A <b>bold</b> and <em>soft</em> word,
       wrapped in the source, with <code>code</code> and a <a href="../b" title="hover">link</a>.</p>
    <h2>List</h2>
    <ul><li>one</li><li>two<ul><li>inner</li></ul></li></ul>
    <ol><li>first</li><li>second</li></ol>
    <pre><code class="language-python">def f():
    return 1 &lt; 2
</code></pre>
    <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
    <blockquote><p>quoted</p></blockquote>
    """
    assert markdown(html) == (
        "# Title\n\n"
        "A **bold** and *soft* word, wrapped in the source, with `code` and a [link](https://site.test/b).\n\n"
        "## List\n\n"
        "- one\n- two\n  - inner\n\n"
        "1. first\n2. second\n\n"
        "```python\ndef f():\n    return 1 < 2\n```\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n"
        "> quoted"
    )


@pytest.mark.parametrize(
    "block",
    [
        '<div class="highlight-python3 notranslate"><div class="highlight"><pre>x = 1</pre></div></div>',
        '<div class="highlight highlight-source-python3"><pre>x = 1</pre></div>',
        '<pre class="brush: python3">x = 1</pre>',
        '<pre class="lang-python3"><code>x = 1</code></pre>',
        '<pre><code class="hljs language-python3">x = 1</code></pre>',
    ],
)
def test_the_language_of_code_is_found_where_sites_put_it(block: str) -> None:
    assert markdown(block) == "```python3\nx = 1\n```"


@pytest.mark.parametrize("body", ["{}", "<div>{}</div>", "\n<div>\n{}\n</div>\n"])
def test_a_list_that_a_quotation_only_indents_is_no_quotation(body: str) -> None:
    inner = body.format("<ul><li>oak</li><li>elm</li></ul>")
    assert markdown(f"<p>The kinds are</p><blockquote>{inner}</blockquote>") == "The kinds are\n\n- oak\n- elm"


def test_code_without_a_language_has_a_bare_fence() -> None:
    assert markdown('<div class="highlight-default notranslate"><pre>$ ls</pre></div>') == "```\n$ ls\n```"


CONTENT = "<p>" + "The content is a paragraph of real words. " * 10 + "</p>"
WORDS = ("The content is a paragraph of real words. " * 10).strip()


@pytest.mark.parametrize(
    "furniture",
    [
        "<script>var x = '<p>script</p>'</script>",
        "<style>p { color: red }</style>",
        "<noscript>turn it on</noscript>",
        "<nav><a href='/'>Home</a></nav>",
        "<header><a href='/'>Logo</a></header>",
        "<footer>All rights reserved</footer>",
        "<aside>Most read</aside>",
        "<form><label>Search</label><input name=q><button>Go</button></form>",
        "<div role=dialog>Sign up now</div>",
        "<div class='CookieBanner'>We value your privacy</div>",
        "<div id=cookie-law>We value your privacy</div>",
        "<div hidden>instructions</div>",
        "<div style='color:red; display: none'>instructions</div>",
        "<span aria-hidden=true>instructions</span>",
        "<template><p>instructions</p></template>",
        "<!-- instructions -->",
    ],
)
def test_furniture_and_hidden_text_are_dropped(furniture: str) -> None:
    assert markdown(f"{furniture}{CONTENT}{furniture}") == WORDS


def test_the_main_part_is_chosen_where_it_holds_the_text() -> None:
    assert markdown(f"<div>Menu of the site</div><main>{CONTENT}</main><div>Also on this site</div>") == WORDS


def test_a_main_part_that_is_nearly_empty_is_not_the_content() -> None:
    assert markdown(f"<main><p>Loading</p></main><div>{CONTENT}</div>") == WORDS


def test_a_wrapper_with_a_suspicious_name_keeps_its_content() -> None:
    assert markdown(f"<div class=no-cookie-wall><form>{CONTENT}</form></div>") == WORDS


def test_layout_tables_become_blocks_and_data_tables_stay() -> None:
    layout = f"<table><tr><td><ul><li>side</li></ul></td><td><h1>Head</h1>{CONTENT}</td></tr></table>"
    assert markdown(layout) == f"# Head\n\n{WORDS}"
    assert markdown("<table><tr><td>1</td><td><p>2</p></td></tr></table>") == "| 1 | 2 |\n| --- | --- |"


def test_what_a_page_says_of_itself_is_kept() -> None:
    html = """<html lang="de-AT"><head><title> A
      title </title><base href="/base/"><meta name="Author" content="A. Writer"><meta property="og:description" content="On it">
      <script type="application/ld+json">{"@type": "Article", "datePublished": "2026-02-03"}</script></head>
      <body><nav><a href="nav">n</a></nav><p><a href="x#1">x</a> <a href="x#2">x</a> <a href="ftp://f.test/">f</a>
      <a href="https://other.test/?q=1">o</a> <a href="http://[">bad</a>
      <a href="javascript:void(0)">js</a></p></body></html>"""
    got = extract(html, "text/html", URL)
    assert (got.title, got.language, got.author, got.published, got.description) == (
        "A title",
        "de-AT",
        "A. Writer",
        "2026-02-03",
        "On it",
    )
    assert got.links == ("https://site.test/base/x", "https://other.test/?q=1", "https://site.test/base/nav")


def test_headings_and_languages_of_code_are_listed() -> None:
    html = "<h1>One</h1><pre><code class=language-Python># no heading</code></pre><h3>Two</h3><pre class=lang-sh>ls</pre>"
    got = extract(html, "text/html", URL)
    assert (got.headings, got.code_languages) == (("One", "Two"), ("python", "sh"))


def test_the_thread_for_readers_without_scripts_is_read() -> None:
    thread = f"<noscript>{CONTENT}{CONTENT}</noscript>"
    assert markdown(f"<div id=app>Loading</div>{thread}") == f"{WORDS}\n\n{WORDS}"


def test_a_title_is_found_without_a_head() -> None:
    assert extract("<h1>Only <i>this</i></h1>", "text/html", URL).title == "Only this"
    assert extract('<meta property="og:title" content="Shared">x', "text/html", URL).title == "Shared"


def test_a_link_to_a_script_or_to_a_place_on_the_page_is_its_words() -> None:
    links = "<a href=' JavaScript:show(730)'>Show</a> and <a href='#top'>top</a> and <a href='/x'>page</a>"
    assert to_markdown(f"<body><p>{links}</p></body>", "https://a.test/") == "Show and top and [page](https://a.test/x)"


def test_links_are_bounded() -> None:
    html = "".join(f'<a href="/{n}">{n}</a> ' for n in range(2_000))
    assert len(extract(html, "text/html", URL).links) == 500


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("<p>häß</p>".encode(), "text/html", "häß"),
        ("<p>häß</p>".encode("cp1252"), "text/html; charset=ISO-8859-1", "häß"),
        (b"<meta charset=shift_jis><p>" + "日本".encode("shift_jis"), "text/html", "日本"),
        (codecs.BOM_UTF16_LE + "<p>häß</p>".encode("utf-16-le"), "text/html; charset=utf-8", "häß"),
        (codecs.BOM_UTF8 + "häß".encode(), "text/plain", "häß"),
        ("<p>häß</p>".encode(), "text/html; charset=ascii", "häß"),
        ("<p>häß</p>".encode(), "text/html; charset=rot13", "häß"),
        ("<p>日本</p>".encode("iso-2022-jp"), "text/html; charset=iso-2022-jp", "日本"),
        ("<meta charset=utf-16><p>häß</p>".encode(), "text/html", "häß"),
        ("Русский текст в старой кодировке, без объявления.".encode("cp1251"), "text/plain", None),
        ("häß".encode()[:-1], "text/plain; charset=utf-8", "hä"),
        (b"\xff\xfe\xfd", "text/html; charset=utf-8", None),
    ],
)
def test_the_charset_is_what_the_bytes_are(body: bytes, content_type: str, text: str | None) -> None:
    got = extract(body, content_type, URL).text
    assert text is None or got == text
    assert got.encode()


def test_an_undeclared_charset_is_guessed() -> None:
    russian = "Русский текст в старой кодировке, без всякого объявления о ней."
    assert extract(russian.encode("cp1251"), "text/plain", URL).text == russian


def test_plain_text_keeps_its_lines_and_gives_its_links() -> None:
    body = "# Head\r\n\r\nSee https://x.test/a.\r\n"
    assert extract(body, "text/markdown", URL) == Extracted(
        text="# Head\n\nSee https://x.test/a.", title="Head", links=("https://x.test/a",)
    )


@pytest.mark.parametrize(
    ("body", "text"), [('{"a": "ä"}', '{\n  "a": "ä"\n}'), ("{broken", "{broken"), ("[" * 100_000, "[" * 100_000)]
)
def test_json_is_laid_out_and_broken_json_left_alone(body: str, text: str) -> None:
    assert extract(body, "application/json", URL).text == text


def test_control_characters_never_reach_the_text() -> None:
    assert extract("a\x00b\x1b[31mc\x07\ufffe", "text/plain", URL).text == "ab[31mc"
    assert markdown("<p>a\x00b\x1bc</p>") == "abc"


RSS = """<?xml version="1.0"?><rss><channel><title>News</title><description>All of it</description><language>en</language>
<item><title>First</title><link>/1</link><pubDate>Mon, 02 Feb 2026</pubDate>
<description>&lt;p&gt;It &lt;b&gt;happened&lt;/b&gt;.&lt;/p&gt;</description></item>
<item><title>Second</title><description>Plain.</description></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><entry><title>One</title>
<link rel="self" href="/self"/><link href="https://b.test/1"/><updated>2026-01-01</updated><summary>Words.</summary></entry></feed>"""


def test_feeds_become_lists_of_entries() -> None:
    assert extract(RSS, "application/rss+xml", URL) == Extracted(
        text=("# News\n\n## [First](https://site.test/1)\n\nMon, 02 Feb 2026\n\nIt **happened**.\n\n## Second\n\nPlain."),
        title="News",
        language="en",
        description="All of it",
        links=("https://site.test/1",),
    )
    assert extract(ATOM.encode(), "application/atom+xml", URL).text == (
        "# Log\n\n## [One](https://b.test/1)\n\n2026-01-01\n\nWords."
    )


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<a><b>one</b><b>two</b></a>", "one\ntwo"),
        ("<a><c>broken", "broken"),
        ('<!DOCTYPE a [<!ENTITY x "boom">]><a>&x;</a>', None),
        ("<a>" * 50_000 + "deep", None),
    ],
)
def test_other_xml_gives_its_text_and_entities_are_never_expanded(xml: str, text: str | None) -> None:
    got = extract(xml, "application/xml", URL).text
    assert text is None or got == text
    assert got != "boom"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<!DOCTYPE html><p>", "text/html"),
        (b"\n <html lang=en>", "text/html"),
        (b"<!-- x --> <body>", "text/html"),
        (b"plain words", "text/plain"),
        (b"", "text/plain"),
        (b"\x89PNG\r\n\x1a\n\x00", "image/png"),
        (b"\0\1\2", "application/octet-stream"),
        ("\ufeffwide".encode("utf-16-le"), "text/plain"),
    ],
)
def test_a_body_without_a_type_is_sniffed(data: bytes, kind: str) -> None:
    assert sniff_type(data) == kind


@pytest.mark.parametrize(
    ("header", "kind"), [("Text/HTML; charset=x", "text/html"), (" text/plain ", "text/plain"), ("a/b, c/d", "a/b"), ("", "")]
)
def test_the_media_type_is_the_header_without_parameters(header: str, kind: str) -> None:
    assert media_type(header) == kind
