"""Laws of the normal form and of finding URLs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexi import urls

HOSTS = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z][a-z0-9]{1,8}){1,2}", fullmatch=True)
PATHS = st.text(st.characters(codec="utf-8", exclude_characters="#?"), max_size=30)
QUERIES = st.text(st.characters(codec="utf-8", exclude_characters="#"), max_size=30)
WEB_URLS = st.builds(lambda s, h, p, q: f"{s}://{h}/{p}?{q}", st.sampled_from(["http", "https", "HTTP"]), HOSTS, PATHS, QUERIES)


@given(WEB_URLS)
def test_the_normal_form_is_its_own_normal_form(url: str) -> None:
    assert urls.normal(urls.normal(url)) == urls.normal(url)


@given(WEB_URLS, st.text(max_size=10))
def test_a_fragment_never_makes_another_page(url: str, fragment: str) -> None:
    whole = urls.parse(url).href  # white space at the end of a text is not part of its URL
    assert urls.normal(f"{whole}#{fragment}") == urls.normal(url)


@given(WEB_URLS)
def test_the_normal_form_stays_on_its_host_and_path(url: str) -> None:
    before, after = urls.parse(url), urls.parse(urls.normal(url))
    assert (before.scheme, before.host, before.port, before.path) == (after.scheme, after.host, after.port, after.path)


@given(st.text())
def test_any_text_is_a_url_or_a_value_error(text: str) -> None:
    try:
        parsed = urls.parse(text)
    except ValueError:
        return
    assert urls.parse(parsed.href) == parsed


@given(st.text(), WEB_URLS, st.text())
def test_what_is_found_in_a_text_stands_in_it_and_is_a_web_url(before: str, url: str, after: str) -> None:
    text = f"{before} {url} {after}"
    for found in urls.find_urls(text):
        assert found in text
        assert urls.is_web_url(found)


@given(HOSTS, st.sampled_from([".", ",", ")", "!", "?", '"', "'", ").", "»"]))
def test_a_url_at_the_end_of_a_sentence_is_found_whole(host: str, end: str) -> None:
    assert urls.find_urls(f"(see https://{host}/page{end}") == [f"https://{host}/page"]
