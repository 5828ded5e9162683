"""A page says what it is: of an article the comments, teasers and bylines go, and of a thread the posts stay."""

from __future__ import annotations

import json

import pytest
from resiliparse.parse.html import HTMLTree

from nexi.extract.page_head import ARTICLE, GOODS, MAYBE_ARTICLE, OTHER, THREAD, PageHead, find_head_parts, read_page_head
from nexi.extract.text import to_markdown
from nexi.formats import extract

SENTENCE = "The council voted on Tuesday to rebuild the old harbour wall, which the storm of March had broken in three places. "
REMARK = "I walked past the wall yesterday and I think that the council should have acted years ago, as everybody here knew. "
STORY = "".join(f"<p>{SENTENCE * 3}Part {n}.</p>" for n in range(6))
MORE = STORY.replace("Part ", "Part 1")
COMMENTS = "".join(f"<li class=comment><p>{REMARK * 2}Remark {n}.</p></li>" for n in range(6))
THREAD_HEAD = '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>'
ARTICLE_HEAD = '<script type="application/ld+json">{"@type": "NewsArticle"}</script>'


def head_of(head: str, body: str = "") -> PageHead:
    tree = HTMLTree.parse(f"<html><head>{head}</head><body {body}><p>Text</p></body></html>")
    return read_page_head(tree, find_head_parts(tree), "https://times.example/")


@pytest.mark.parametrize(
    ("head", "body", "genre"),
    [
        (ARTICLE_HEAD, "", ARTICLE),
        ('<script type="application/ld+json">{"@graph": [{"@type": ["BlogPosting", "Thing"]}]}</script>', "", ARTICLE),
        ('<meta property="article:published_time" content="2026-01-01">', "", ARTICLE),
        ("", 'class="wp single-post postid-3"', ARTICLE),
        ("", 'itemscope itemtype="https://schema.org/Article"', ARTICLE),
        ('<meta property="og:type" content="article">', "", MAYBE_ARTICLE),
        (THREAD_HEAD + ARTICLE_HEAD, "", THREAD),
        ('<script type="application/ld+json">{"@type":"Product"}</script>', "", GOODS),
        ('<meta property="og:type" content="product.item">', "", GOODS),
        ('<meta property="og:type" content="website">', "", OTHER),
    ],
)
def test_the_genre_of_a_page_is_what_it_says_of_itself(head: str, body: str, genre: str) -> None:
    assert head_of(head, body).genre == genre


def test_the_head_has_the_words_of_the_title_the_description_and_the_declared_article() -> None:
    body = json.dumps({"@type": "Article", "articleBody": 'He said <b>"no"</b> &amp; left.'})
    found = head_of(
        f'<title>Other</title><meta property="og:title" content="The Wall"><meta name=description content="About it.">'
        f'<script type="application/ld+json">{body}</script>'
    )
    assert found == PageHead(ARTICLE, frozenset({"the", "wall"}), "About it.", 'He said  "no"  & left.')


def test_the_comments_under_an_article_go_and_the_posts_of_a_thread_stay() -> None:
    comments = f"<div id=comments><h2>6 Comments</h2><ol>{COMMENTS}</ol></div>"
    article = f"<html><head>{ARTICLE_HEAD}</head><body><h1>Wall</h1><div class=content>{STORY}</div>{comments}</body></html>"
    thread = f"<html><head>{THREAD_HEAD}</head><body><h1>Wall</h1><p>What do you think?</p>{comments}</body></html>"
    text = to_markdown(article, "")
    assert ("Part 5" in text, "Remark" in text) == (True, False)
    assert to_markdown(thread, "").count("Remark") == 6


def test_of_a_page_that_declares_its_article_no_other_paragraph_is_kept() -> None:
    plea = (
        f"<p>{'Our reporters work day and night so that you can read this, and they would be glad of your support. ' * 2}</p>"
    )
    page = f"<div><h1>Wall</h1>{STORY}{plea}{MORE}</div>"
    declared = json.dumps({"@type": "NewsArticle", "articleBody": STORY + MORE})
    texts = [
        to_markdown(f"<head><script type='application/ld+json'>{data}</script></head><body>{page}</body>", "")
        for data in ('{"@type": "NewsArticle"}', declared)
    ]
    assert [(text.count("Part"), "Our reporters" in text) for text in texts] == [(12, True), (12, False)]


def test_a_declared_article_that_the_page_does_not_show_changes_nothing() -> None:
    declared = json.dumps({"@type": "NewsArticle", "articleBody": "Quite another text, of which this page has not a word."})
    head = f"<head><script type='application/ld+json'>{declared}</script></head>"
    assert to_markdown(f"{head}<body><div>{STORY}</div></body>", "").count("Part") == 6


def test_a_page_that_a_script_would_write_has_a_description_and_no_text() -> None:
    html = "<html><head><meta name=description content='All about walls.'></head><body><script>go()</script></body></html>"
    page = extract(html, "text/html", "")
    assert (to_markdown(html, ""), page.text, page.description) == ("", "", "All about walls.")


def test_a_page_that_a_script_would_write_is_the_article_that_it_declares() -> None:
    declared = json.dumps({"@type": "NewsArticle", "articleBody": "The wall was built in 1204 and fell in 1690."})
    html = f"<head><script type='application/ld+json'>{declared}</script></head><body><div id=app></div></body>"
    assert to_markdown(html, "") == extract(html, "text/html", "").text == "The wall was built in 1204 and fell in 1690."


MENU = "".join(
    f"<a href='/{name}'>{name} and more of it</a> " for name in ("Help", "Sites", "Terms", "Privacy", "Stores", "Jobs")
)
SHOP = "<head><meta property=og:type content=product></head>"
FILTERS = "".join(f"<div class=facet><span>Colour {n}</span></div>" for n in range(120))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(f"{SHOP}<body><div id=root></div><footer>{MENU * 3}</footer></body>", id="nothing but a footer of links"),
        pytest.param(f"<body><div>{MENU}</div><div id=app></div></body>", id="a few links"),
        pytest.param(
            f"{SHOP}<body><main><h2>Choose your colour</h2><p>It ships in a week.</p></main>{FILTERS}</body>",
            id="two lines of a shop",
        ),
    ],
)
def test_a_page_that_waits_for_its_script_is_not_its_menus(page: str) -> None:
    assert to_markdown(page, "https://shop.test/") == ""


def test_a_shop_of_which_one_paragraph_stands_out_keeps_it() -> None:
    text = "This lamp of brass and glass was made by hand, and it burns for forty hours at a time."
    offer = f"<div class=facet><span>{text}</span></div>"
    assert text in to_markdown(f"{SHOP}<body>{FILTERS}{offer}{FILTERS}</body>", "https://shop.test/")


def test_a_list_of_links_that_is_the_page_is_kept() -> None:
    files = "".join(f"<li><a href='/{n}.txt'>Minutes of meeting {n}</a></li>" for n in range(40))
    assert to_markdown(f"<body><h1>Minutes</h1><ul>{files}</ul></body>", "https://town.test/").count("- [Minutes") == 40


def test_a_frame_that_is_never_closed_does_not_swallow_the_page() -> None:
    page = f"<body><noscript><iframe src=x></noscript><div>{STORY}</div></body>"
    assert to_markdown(page, "").count("Part") == 6


def test_what_react_streams_hidden_and_a_script_shows_is_read() -> None:
    parts = "".join(
        f'<div hidden id="{name}">{STORY.replace("Part ", f"Part {name}")}</div>' for name in ("S:0", "S:1", "S:2", "other")
    )
    assert to_markdown(f"<body><h1>Wall</h1>{parts}</body>", "").count("Part") == 18


def test_a_thread_with_each_post_in_a_form_of_its_own_is_kept() -> None:
    posts = "".join(f"<div class=post><form><p>{REMARK * 2}Remark {n}.</p></form></div>" for n in range(6))
    assert "Remark 3" in to_markdown(f"<head>{THREAD_HEAD}</head><body><h1>Wall</h1>{posts}</body>", "")
    assert "Remark" not in to_markdown(f"<body><div>{STORY}</div><form><p>{REMARK}Remark.</p></form></body>", "")


@pytest.mark.parametrize(
    "panel",
    [
        "<div role=tabpanel hidden>{}</div>",
        '<div class="chakra-collapse" style="display: none; height: 0">{}</div>',
        "<section class=Accordion><div aria-hidden=true>{}</div></section>",
    ],
)
def test_a_tab_or_accordion_that_waits_for_a_click_is_read(panel: str) -> None:
    page = f"<body><h1>Wall</h1><div>{STORY}{MORE}{panel.format(STORY.replace('Part', 'Panel'))}</div></body>"
    assert (to_markdown(page, "").count("Part"), to_markdown(page, "").count("Panel")) == (12, 6)


@pytest.mark.parametrize(
    "panel",
    [
        "<div hidden>{}</div>",
        "<div class=accordion><div hidden>Panel</div></div>",
        "<div class=collapse hidden><a href=/menu>{}</a></div>",
    ],
)
def test_other_hidden_text_a_notice_and_a_folded_menu_are_not_read(panel: str) -> None:
    page = f"<body><h1>Wall</h1><div>{STORY}{MORE}{panel.format(STORY.replace('Part', 'Panel'))}</div></body>"
    assert (to_markdown(page, "").count("Part"), to_markdown(page, "").count("Panel")) == (12, 0)


def read_page(body: str, head: str = "") -> str:
    return to_markdown(f"<html><head><title>Wall</title>{head}</head><body>{body}</body></html>", "")


def test_a_passage_that_a_page_holds_twice_is_read_once() -> None:
    text = read_page(f"<h1>Wall</h1><div class=wide>{STORY}</div><div class=narrow>{STORY}</div>")
    assert [text.count(f"Part {n}.") for n in range(6)] == [1] * 6


def test_a_caption_is_read_once_however_often_its_picture_is_shown() -> None:
    figure = "<figure><figcaption>The wall of Ewell on the day after the storm.</figcaption></figure>"
    assert read_page(f"<article>{STORY}{figure * 4}{STORY.replace('Part', 'Act')}</article>").count("day after the storm") == 1


def test_items_rows_and_quotations_that_are_said_again_stay() -> None:
    item = (
        "Easy jogging in Zone 2 for ten minutes, then five minutes of drills with strides at the effort of Zone 4, and a walk."
    )
    days = "".join(f"<h3>Day {n}</h3><ul><li>{item}</li><li>Rest</li></ul>" for n in range(3))
    quote = f"<p>As it was said before:</p><blockquote><p>{REMARK}</p></blockquote>"
    text = read_page(f"<article>{STORY}{days}<p>{REMARK}</p>{quote}</article>")
    assert (text.count("Easy jogging"), text.count("Rest"), text.count(REMARK.strip())) == (3, 3, 2)


@pytest.mark.parametrize(
    "furniture",
    [
        '<div id="onetrust-consent-sdk">{}</div>',
        '<div class="slick-slide slick-cloned">{}</div>',
        '<div class="w-form"><div class="w-form-fail">{}</div></div>',
    ],
)
def test_windows_for_consent_clones_of_slides_and_messages_of_forms_go_however_long_they_are(furniture: str) -> None:
    other = "".join(f"<p>{REMARK * 3}Notice {n}.</p>" for n in range(20))
    text = read_page(f"<h1>Wall</h1><article>{STORY}</article>{furniture.format(other)}")
    assert ("Part 5." in text, "Notice" in text) == (True, False)


def test_of_the_posts_of_a_forum_the_words_stay_and_the_card_and_signature_of_who_wrote_them_go() -> None:
    card = '<h4 class="message-name">Ann{0}</h4><h5 class="message-userTitle">Elder {0}</h5>'
    card += '<div class="message-userExtras"><dl><dt>Joined</dt><dd>Jun 2016</dd></dl></div>'
    post = '<article class="message"><div class="message-user">' + card + '</div><div class="message-body"><p>{1}Post {0}.</p>'
    post += '</div><aside class="message-signature">Sent from my telephone</aside></article>'
    text = read_page("<h1>Wall</h1>" + "".join(post.format(n, REMARK) for n in range(5)), THREAD_HEAD)
    assert [f"Post {n}." in text for n in range(5)] == [True] * 5
    assert [word in text for word in ("Ann1", "Joined", "Elder", "telephone")] == [True, False, False, False]


def test_a_thread_in_a_form_is_kept_however_much_the_page_says_of_itself_to_machines() -> None:
    said = json.dumps({"@type": "DiscussionForumPosting", "comment": [{"text": REMARK * 20}] * 20})
    posts = "".join(f"<div class=post><p>{REMARK}Post {n}.</p></div>" for n in range(5))
    head = f'<script type="application/ld+json">{said}</script>'
    page = f"<html><head></head><body><h1>Wall</h1><form>{posts}</form>{head}</body></html>"
    assert to_markdown(page, "").count("Post ") == 5


TEASERS = (
    "<p><a href=/1>Find out how the wall of Danvers was built</a></p>",
    "<p><b>Read more:</b> <a href=/2>Ten walls that fell in winter</a></p>",
    "<p>Related stories: <a href=/3>The long history of masonry</a></p>",
    "<div>👉 <a href=/4>Check out our guide to walls</a></div>",
)


@pytest.mark.parametrize("teaser", TEASERS)
def test_a_line_of_an_article_that_leads_to_another_page_goes(teaser: str) -> None:
    words = HTMLTree.parse(teaser).body.text.split()[-1]
    assert words not in read_page(f"<article><h1>Wall</h1>{STORY}{teaser}{MORE}</article>", ARTICLE_HEAD)


@pytest.mark.parametrize(
    "line",
    [
        "<p>Read the letter that the mayor wrote on <a href=/1>Sunday</a>, in which she promised a wall.</p>",
        "<p><a href=/2>The minutes of the council</a> name the mason and his price.</p>",
        "<p>See figure 3 for the promised wall.</p>",
    ],
)
def test_a_sentence_of_an_article_with_a_link_stays(line: str) -> None:
    words = HTMLTree.parse(line).body.text.split()[-1]
    assert words in read_page(f"<article><h1>Wall</h1>{STORY}{line}{MORE}</article>", ARTICLE_HEAD)


@pytest.mark.parametrize(
    "head",
    [
        '<script type="application/ld+json">{"@type": "Article", "author": [{"@type": "Person","name": "Ann Ewell"}]}</script>',
        f"{ARTICLE_HEAD}<meta name=author content='Ann Ewell'>",
    ],
)
def test_what_an_article_says_of_its_author_goes_and_what_it_says_of_others_stays(head: str) -> None:
    of_author = "<p>Ann Ewell is a writer who has covered harbours, walls and the sea for the last twenty years or so.</p>"
    of_mason = "<p>Bob Danvers is a mason who has built harbours, walls and houses for the last thirty years or so.</p>"
    text = read_page(f"<article><h1>Wall</h1>{STORY}{of_mason}{MORE}{of_author}</article>", head)
    assert ("Bob Danvers" in text, "Ann Ewell" in text) == (True, False)


def test_the_text_that_a_template_came_with_goes() -> None:
    filler = "<p>Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.</p>"
    page = f"<article><h1>Wall</h1>{STORY}{filler}{MORE}</article>"
    assert "dolor" not in read_page(page)
    assert "dolor" in to_markdown(f"<html><head><title>What Lorem ipsum means</title></head><body>{page}</body></html>", "")


def test_a_form_for_comments_in_one_box_with_the_code_of_an_article_goes() -> None:
    code = "<pre>wall = build(3)</pre>"
    form = "<div class=comments><p><a href=/u>Post a comment</a></p><p><a href=/l>Log in</a></p></div>"
    text = read_page(f"<div class=post><h1>Wall</h1>{STORY}{code}{MORE}{code * 3}{form}</div>", ARTICLE_HEAD)
    assert (text.count("wall = build"), "Post a comment" in text, "Log in" in text) == (4, False, False)


NEWS = """<html lang="en"><head><title>Harbour of Ewell reopens - The Ewell Times</title>
<meta property="og:type" content="article">
<script type="application/ld+json">{"@type": "NewsArticle", "headline": "Harbour of Ewell reopens"}</script></head><body>
<header><nav><a href="/">Home</a> <a href="/w">World</a> <a href="/s">Sport</a></nav></header>
<div class="breaking-news"><h4>Breaking</h4><ul><li><a href="/1">Minister resigns over bridge</a></li>
<li><a href="/2">Storm closes schools in Danvers</a></li></ul></div>
<article><h1>Harbour of Ewell reopens</h1>
<div class="social-share"><a href="/f">Share to Facebook</a> <a href="/t">Share to Twitter</a> <a href="/p">Print</a></div>
<p>The harbour of Ewell reopened on Monday after three years of work on its northern pier, the town council said.</p>
<p>About 400 boats had been moored in Danvers while the pier was rebuilt, and their owners paid no fees in that time.</p>
<aside class="related"><h3>Read more</h3><ul><li><a href="/3">Fishing fleet returns to port</a></li>
<li><a href="/4">How the pier was built</a></li></ul></aside>
<p>The council expects the last crane to leave in June, when the market on the quay opens again for the summer season.</p>
<div class="donate-box"><p>Please support our journalism with a small donation, so that the news stays free.</p>
<a href="/d">Donate now</a></div></article>
<section id="comments" class="comments"><h3>2 Comments</h3><div class="comment"><b>sailor12</b>
<p>I have waited for this for years, and the fees should stay low for small boats.</p></div><div class="comment"><b>gull</b>
<p>The old pier was better, and no one asked the people who live next to it.</p></div></section>
<div class="trending"><h3>Trending now</h3><ul><li><a href="/5">Ten walks near Ewell</a></li>
<li><a href="/6">Recipe: fish pie</a></li></ul></div>
<form><p>Thank you! Your submission has been received! Oops! Something went wrong while submitting the form.</p></form>
<footer><p>Copyright 2026 The Ewell Times</p></footer></body></html>"""


def test_of_a_page_of_news_the_article_is_left_without_teasers_pleas_comments_and_forms() -> None:
    assert extract(NEWS, "text/html", "https://times.example/harbour").text.split("\n\n") == [
        "The harbour of Ewell reopened on Monday after three years of work on its northern pier, the town council said.",
        "About 400 boats had been moored in Danvers while the pier was rebuilt, and their owners paid no fees in that time.",
        "The council expects the last crane to leave in June, when the market on the quay opens again for the summer season.",
    ]


@pytest.mark.parametrize(
    ("path", "is_at_article"),
    [
        ("/blog/walls", True),
        ("/2026/03/walls", True),
        ("/why-the-old-wall-fell", True),
        ("/docs/walls", False),
        ("/walls-and-gates", False),
        ("/", False),
    ],
)
def test_the_address_of_an_article_has_a_folder_of_posts_a_year_or_a_headline(path: str, is_at_article: bool) -> None:
    tree = HTMLTree.parse("<body><p>Text</p></body>")
    assert read_page_head(tree, find_head_parts(tree), f"https://times.example{path}").is_at_article == is_at_article


def test_a_page_of_running_text_at_the_address_of_an_article_is_cut_as_one_though_it_does_not_say_so() -> None:
    more = "<p><a href=/towers>Ten towers</a></p>"
    page = f"<title>The wall - Times</title><h1>The wall</h1><div>{STORY}{more}{MORE}</div>"
    at_article, elsewhere = (to_markdown(page, f"https://times.example{path}") for path in ("/blog/wall", "/wall"))
    assert ["Part 5" in text for text in (at_article, elsewhere)] == [True, True]
    assert ["Ten towers" in text for text in (at_article, elsewhere)] == [False, True]


def test_the_title_is_not_said_again_in_the_text_of_an_article() -> None:
    page = f"<head><title>The wall - Times</title>{ARTICLE_HEAD}</head><h1>The wall</h1><div>{STORY}</div>"
    found = extract(page.encode(), "text/html", "https://times.example/wall")
    assert (found.title, "The wall" in found.text) == ("The wall - Times", False)


def test_a_link_that_is_written_out_as_an_address_stays_in_an_article() -> None:
    code = "https://code.example/wall/tree"
    page = f"<html><head>{ARTICLE_HEAD}</head><body><div>{STORY}<p><a href={code}>{code}</a></p>{MORE}</div></body></html>"
    assert code in to_markdown(page, "")


SPONSORED = """<html lang="en"><head><title>Moon</title></head><body><main><h1>Moon</h1>
<p>The Moon is the only natural satellite of Earth, and it is large for a planet of this size, as is well known.</p>
<div class="{name}"><span>Advertisement</span><a href="https://ads.example/c?id=1">Save 40% on office chairs this week</a></div>
<p>It orbits at an average distance of 384,400 km, about 30 times the diameter of Earth, and moves away slowly.</p>
</main></body></html>"""


@pytest.mark.parametrize("name", ["ad-slot", "Ads", "td-adslot", "adsbygoogle banner_ad", "advertisement", "post sponsored"])
def test_an_advertisement_between_two_paragraphs_is_left_out(name: str) -> None:
    text = extract(SPONSORED.format(name=name), "text/html", "https://space.example/moon").text
    assert ("office chairs" in text, "384,400 km" in text) == (False, True)


@pytest.mark.parametrize("name", ["download", "shadow", "lead", "addition"])
def test_a_name_that_only_holds_the_letters_ad_is_no_advertisement(name: str) -> None:
    text = extract(SPONSORED.format(name=name), "text/html", "https://space.example/moon").text
    assert "office chairs" in text
