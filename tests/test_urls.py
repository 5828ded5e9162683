"""URLs are read as a browser reads them."""

from __future__ import annotations

import pytest

from nexi import urls
from nexi.urls import Url


def test_a_url_is_parsed_into_the_parts_a_request_needs() -> None:
    assert urls.parse("HTTPS://WWW.Example.COM:8443/A/../b?x=1#top") == Url(
        href="https://www.example.com:8443/b?x=1#top",
        scheme="https",
        host="www.example.com",
        port=8443,
        path="/b",
        query="x=1",
        fragment="top",
    )


@pytest.mark.parametrize(
    ("url", "port", "explicit"),
    [
        ("http://example.com/", 80, None),
        ("https://example.com/", 443, None),
        ("https://example.com:80/", 80, 80),
        ("ftp://example.com:2121/", 2121, 2121),
        ("mailto:someone@example.com", 0, None),
    ],
)
def test_the_port_is_the_one_that_would_be_used_and_explicit_where_it_is_not_the_default(
    url: str, port: int, explicit: int | None
) -> None:
    parsed = urls.parse(url)
    assert (parsed.port, parsed.explicit_port) == (port, explicit)


def test_a_url_is_immutable_and_hashable() -> None:
    with pytest.raises(AttributeError):
        urls.parse("http://a.test/").host = "b.test"  # type: ignore[misc]
    assert len({urls.parse("http://a.test/"), urls.parse("http://A.test/")}) == 1


def test_a_url_may_have_8192_characters_and_no_more() -> None:
    longest = "http://a.test/".ljust(8_192, "b")
    assert (urls.parse(longest).href, urls.find_urls(f"see {longest} there")) == (longest, [longest])
    assert urls.join("http://a.test/", longest) == longest
    for refused in (lambda: urls.parse(longest + "b"), lambda: urls.join("http://a.test/", longest + "b")):
        with pytest.raises(ValueError, match="8193 characters"):
            refused()
    assert urls.find_urls(longest + "b") == []


@pytest.mark.parametrize(
    ("url", "authority", "origin", "target"),
    [
        ("http://example.com", "example.com", "http://example.com", "/"),
        ("http://example.com:443/", "example.com:443", "http://example.com:443", "/"),
        ("https://[::1]:8080/a?b", "[::1]:8080", "https://[::1]:8080", "/a?b"),
        ("https://exämple.de/ä", "xn--exmple-cua.de", "https://xn--exmple-cua.de", "/%C3%A4"),
    ],
)
def test_authority_origin_and_target_are_what_goes_over_the_wire(url: str, authority: str, origin: str, target: str) -> None:
    parsed = urls.parse(url)
    assert (parsed.authority, parsed.origin, parsed.target) == (authority, origin, target)


@pytest.mark.parametrize(
    "spelling", ["http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://0177.0.0.1/", "http://127。0。0。1/"]
)
def test_every_spelling_of_an_address_is_that_address(spelling: str) -> None:
    assert urls.host_of(spelling) == "127.0.0.1"


@pytest.mark.parametrize(
    "text",
    ["", "example.com", "http://", "http://a b/", "http://[::1", "http://a:99999/", "http://\ud800/", "http://a/" + "b" * 9000],
)
def test_text_that_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        urls.parse(text)
    assert urls.is_web_url(text) is False


def test_user_names_are_noticed() -> None:
    addresses = (
        "http://user:secret@example.com/",
        "http://user@example.com/",
        "http://:secret@example.com/",
        "http://a.test/@b",
    )
    assert [bool(urls.parse(address).userinfo) for address in addresses] == [True, True, True, False]


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://Example.com:80/Path?b=2&a=1#frag", "http://example.com/Path?b=2&a=1"),
        ("https://example.com?utm_source=x&q=a%20b&UTM_Medium=y&gclid=1&fbclid=2", "https://example.com/?q=a%20b"),
        ("https://example.com/?", "https://example.com/"),
        ("https://example.com/a/?&&x", "https://example.com/a/?x"),
        ("https://www.example.com/CASE/", "https://www.example.com/CASE/"),
    ],
)
def test_the_normal_form_drops_fragments_default_ports_and_tracking_only(url: str, normal: str) -> None:
    assert urls.normal(url) == normal


def test_pages_that_are_no_web_pages_have_no_normal_form() -> None:
    with pytest.raises(ValueError, match="not a web URL"):
        urls.normal("mailto:someone@example.com")


def test_http_and_https_copies_share_a_dedup_key() -> None:
    assert urls.dedup_key("http://example.com") == urls.dedup_key("https://example.com:443/#x") == "//example.com/"


def test_a_hit_of_this_machine_is_its_own_key() -> None:
    keys = [
        urls.hit_key(url) for url in ("http://example.com/#x", "https://example.com", "/notes/moon.md", "file:///notes/moon.md")
    ]
    assert keys == ["//example.com/", "//example.com/", "/notes/moon.md", "file:///notes/moon.md"]


def test_hosts_with_and_without_www_do_not_share_a_dedup_key() -> None:
    assert urls.dedup_key("http://www.example.com") != urls.dedup_key("http://example.com")


def test_a_page_id_is_the_hash_of_the_normal_form() -> None:
    assert urls.page_id("http://example.com:80/#a") == urls.page_id("http://example.com/")
    assert urls.page_id("http://example.com/") == (
        "web:sha256:2a1b402420ef46577471cdc7409b0fa2c6a204db316e59ade2d805435489a067"
    )


@pytest.mark.parametrize(
    ("base", "href", "joined"),
    [
        ("https://a.test/b/c", "../d?e#f", "https://a.test/d?e#f"),
        ("https://a.test/b", "//other.test/x", "https://other.test/x"),
        ("https://a.test/b", "mailto:x@y", "mailto:x@y"),
    ],
)
def test_links_are_joined_to_their_page(base: str, href: str, joined: str) -> None:
    assert urls.join(base, href) == joined


@pytest.mark.parametrize(
    ("url", "doi"),
    [
        ("https://doi.org/10.5555/Salt.2", "10.5555/salt.2"),
        ("https://link.publisher.example/article/10.1007/s00-1?error=cookies", "10.1007/s00-1"),
        ("https://journals.example/doi/full/10.1177/12.pdf", "10.1177/12"),
        ("https://journals.example/doi/10.1177/12/abstract", "10.1177/12"),
        ("https://example.org/10.5", ""),
    ],
)
def test_the_doi_in_an_address_is_found(url: str, doi: str) -> None:
    assert urls.find_doi(url) == doi


def test_a_link_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(ValueError):
        urls.join("https://a.test/", "http://[")
    with pytest.raises(ValueError, match="too long"):
        urls.join("https://a.test/", "x" * 9000)


@pytest.mark.parametrize(
    "text", [" http://a.test/", "http://a.test/ b", "http://a.test/\n", "ftp://a.test/", "javascript:alert(1)"]
)
def test_text_with_more_than_a_web_url_in_it_is_none(text: str) -> None:
    assert urls.is_web_url(text) is False


@pytest.mark.parametrize(
    ("text", "is_link"),
    [
        ("obsidian://open?vault=v&file=n", True),
        ("logseq://graph/g?page=p", True),
        ("zotero://select/items/A", True),
        ("obsidian://open?file=two words", False),
        ("https://a.test/?to=obsidian://open", False),
        ("", False),
    ],
)
def test_a_link_into_the_program_of_a_note_is_known_by_its_scheme(text: str, is_link: bool) -> None:
    assert urls.is_note_link(text) is is_link


def test_urls_are_found_verbatim_without_the_sentence_around_them() -> None:
    text = (
        "See (https://en.example.org/wiki/A_(b)), <http://x.test/z>. Or HTTP://UP.test/P?q=1, “https://q.test”; again "
        "http://x.test/z! [label](https://md.test/a) [https://same.test](https://same.test) **https://bold.test/**"
        " https://例え.test/あ。次 ftp://no.test http:// http://a.test:99999/ and https://"
    )
    assert urls.find_urls(text) == [
        "https://en.example.org/wiki/A_(b)",
        "http://x.test/z",
        "HTTP://UP.test/P?q=1",
        "https://q.test",
        "https://md.test/a",
        "https://same.test",
        "https://bold.test/",
        "https://例え.test/あ",
    ]


def test_a_huge_text_of_brackets_is_searched_without_delay() -> None:
    assert urls.find_urls("http://a.test/" + ")" * 1_000_000) == []


@pytest.mark.parametrize(
    ("url", "no_proxy", "bypassed"),
    [
        ("http://a.example.com/", ["example.com"], True),
        ("http://a.example.com/", [".example.com"], True),
        ("http://a.example.com/", ["*.example.com"], True),
        ("http://badexample.com/", ["example.com"], False),
        ("http://example.com:8080/", ["example.com:8080"], True),
        ("http://example.com/", ["example.com:8080"], False),
        ("http://10.1.2.3/", ["10.0.0.0/8"], True),
        ("http://10.1.2.3/", ["10.1.2.3"], True),
        ("http://10.1.2.3/", ["10.1.2.0/8"], True),
        ("http://11.1.2.3/", ["10.1.2.0/8"], False),
        ("http://[::1]/", ["::1"], True),
        ("http://anything.test/", ["*"], True),
        ("http://anything.test/", ["", " "], False),
    ],
)
def test_no_proxy_names_hosts_suffixes_networks_and_ports(url: str, no_proxy: list[str], bypassed: bool) -> None:
    assert urls.bypasses_proxy(urls.parse(url), no_proxy) is bypassed


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("see http://user:secret@a.test/b@c, or SOCKS5://u@b.test", "see http://a.test/b@c, or SOCKS5://b.test"),
        ("mail someone@example.com about http://a.test/", "mail someone@example.com about http://a.test/"),
    ],
)
def test_names_and_passwords_are_cut_out_of_addresses(text: str, hidden: str) -> None:
    assert urls.hide_userinfo(text) == hidden
