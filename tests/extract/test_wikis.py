"""Pages of wikis: the lead first, then the facts of the infobox, and nothing that is meant for editors or other articles."""

from __future__ import annotations

import pytest

from nexi.extract.text import to_markdown

LEAD = "The Skelmouth Tram Company was a maker of trams that was founded in Skelmouth and sold its last tram to a museum."
BODY = "Its works stood beside the harbour, where four halls and a rope factory were joined over the years by covered ways. "
INFOBOX = """<table class="infobox vcard"><caption>Skelmouth Tram Company</caption><tbody>
<tr><td colspan=2 class=infobox-image><a href=/f><img src=x></a><div>The works in 1911</div></td></tr>
<tr><th scope=row>Founded</th><td>4 April 1875<sup class=reference><a href=#1>[1]</a></sup>
<span style="display:none">(<span class=bday>1875-04-04</span>)</span></td></tr>
<tr><th scope=row>Founders</th><td><div class=plainlist><ul><li>Ada Plinth</li><li>Joris Ambeck</li></ul></div></td></tr>
<tr><th scope=row>Headquarters</th><td>Harbour Road<br>Skelmouth</td></tr>
<tr><th colspan=2>Area</th></tr><tr><th scope=row>• Total</th><td>12.5 km<sup>2</sup></td></tr>
<tr><th scope=row>Website</th><td></td></tr></tbody></table>"""
SIDEBAR = """<table class="sidebar sidebar-collapse nomobile"><tbody>
<tr><th>This article is part of a series about Ada Plinth</th></tr>
<tr><td><ul><li><a href=/w/a>Early life of Plinth</a></li>
<li><a href=/w/b>Plinth Foundation</a></li></ul></td></tr></tbody></table>"""


def wiki_page(content: str) -> str:
    """A page as MediaWiki writes it."""
    paragraphs = "".join(f"<p>{BODY * 3}Part {n}.</p>" for n in range(4))
    return f"""<html><head><meta name=generator content="MediaWiki 1.44"></head><body><h1 id=firstHeading>Skelmouth Tram</h1>
<div id=mw-content-text><div class="mw-content-ltr mw-parser-output">{content}
<div class=mw-heading><h2 id=Works>Works</h2>
<span class=mw-editsection><span>[</span><a href=/e>edit</a><span>]</span></span></div>
{paragraphs}<div role=navigation class=navbox><table><tr><td><a href=/w/c>Trams of the coast</a></td></tr></table></div>
</div></div></body></html>"""


def test_the_lead_comes_first_and_then_the_facts_of_the_infobox() -> None:
    text = to_markdown(wiki_page(f"{SIDEBAR}{INFOBOX}<p>{LEAD}</p>"), "")
    _, _, after = text.partition(LEAD)
    assert after.split("\n\n")[1].split("\n") == [
        "- Founded: 4 April 1875",
        "- Founders: Ada Plinth; Joris Ambeck",
        "- Headquarters: Harbour Road; Skelmouth",
        "- Area, Total: 12.5 km^2",
    ]
    assert text.index(LEAD) < text.index("Founded")


def test_the_boxes_of_other_articles_and_the_marks_for_editors_are_dropped() -> None:
    marks = (
        '<sup class="noprint Inline-Template">[<i><a href=/c>citation needed</a></i>]</sup>',
        '<sup class="plainlinks asof-tag update"><a href=/u>[update]</a></sup>',
        "<sup>[<a href=/w>clarification needed</a>]</sup>",
        "<sup>[by whom?]</sup>",
    )
    hatnote = "<div class=hatnote>For the ship, see Skelmouth (ship).</div>"
    text = to_markdown(wiki_page(f"{SIDEBAR}{hatnote}<p>{LEAD}{' and so on'.join(marks)}</p>"), "")
    assert LEAD in text
    for stray in ("edit", "update", "needed", "whom", "Plinth Foundation", "(ship)", "Trams of the coast"):
        assert stray not in text


def test_the_panels_of_a_portable_infobox_are_facts() -> None:
    panels = "".join(
        f"<div class=pi-data><h3 class=pi-data-label>{label}</h3><div class=pi-data-value>{value}</div></div>"
        for label, value in (("Gauge", "1,000 mm"), ("Lines", "<ul><li>North</li><li>South</li></ul>"))
    )
    text = to_markdown(wiki_page(f"<aside class=portable-infobox>{panels}</aside><p>{LEAD}</p>"), "")
    assert "- Gauge: 1,000 mm\n- Lines: North; South" in text


@pytest.mark.parametrize("box", ["<table class=infobox></table>", "<table class=infobox><tr><th>One</th></tr></table>"])
def test_an_infobox_without_fields_adds_nothing(box: str) -> None:
    assert to_markdown(wiki_page(f"{box}<p>{LEAD}</p>"), "").count("\n- ") == 0


def test_other_pages_keep_their_sidebars_to_the_judge_and_their_words() -> None:
    page = f"<body><h1>Notes</h1><div><p>{BODY * 4} The field says [update] when it is old.</p><p>{BODY * 4}</p></div></body>"
    assert "[update]" in to_markdown(page, "").replace("\\", "")
