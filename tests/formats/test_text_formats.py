"""Formats whose files are text become Markdown: tables, e-mail, notebooks, RTF, subtitles, LaTeX and saved pages."""

from __future__ import annotations

import pytest

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.formats import extract, sniff_type, to_text, type_of_name
from tests.formats import samples


def read(name: str, data: bytes | None = None) -> Extracted:
    return extract(samples.SAMPLES[name][0]() if data is None else data, type_of_name(name), "")


def test_values_between_separators_are_a_table() -> None:
    expected = "| Field | Kilograms, dry |\n| --- | --- |\n| North \\| upper | 12,5 |\n| South lower | 3 |"
    assert read("csv") == Extracted(text=expected)
    assert read("tsv").text == "| Field | Kilograms |\n| --- | --- |\n| North | 12 |"


def test_a_message_has_its_header_its_text_once_and_the_names_of_its_attachments() -> None:
    assert read("eml") == Extracted(
        text='# Tee für alle\n\nFrom: "A. Leaf" <leaf@tea.test>  \nTo: all@tea.test  \nDate: Mon, 04 May 2026 07:30:00 +0000\n'
        "\nDer Tee ist um fünf Uhr fertig.\n\n[attachments, not read: menu.pdf (application/pdf)]",
        title="Tee für alle",
        author='"A. Leaf" <leaf@tea.test>',
        published="2026-05-04T07:30:00+00:00",
        headings=("Tee für alle",),
    )


def test_a_mailbox_is_its_messages() -> None:
    found = read("mbox")
    assert found.headings == ("Tee für alle", "Re: Tea")
    assert found.text.endswith('## Re: Tea\n\nFrom: "B. Cup" <cup@tea.test>\n\n>From now on I come at six.')


def test_a_saved_page_is_read_as_a_page() -> None:
    found = read("mhtml")
    assert (found.title, found.text) == ("Tea", "# Tea\n\nIt is warm. [More](https://tea.test/b)")


def test_a_notebook_is_text_code_and_what_the_code_printed() -> None:
    expected = "# Numbers\n\nThe answer.\n\n```python\nprint(6 * 7)\n```\n\n```\n42\n```\n\n| a |\n| --- |\n| 1 |"
    assert (read("ipynb").text, read("ipynb").code_languages) == (expected, ("python",))


def test_rich_text_keeps_headings_letters_lists_and_tables() -> None:
    assert read("rtf") == Extracted(
        text="# Making tea\n\nCafé €5 warm and wet. Чай\n\n- Kettle\n\n1. Boil\n\n"
        "| Leaf | Minutes |\n| --- | --- |\n| Sencha | 2 |\n\nA link",
        title="On tea",
        author="A. Leaf",
        headings=("Making tea",),
    )


def test_subtitles_are_paragraphs_with_the_time_they_begin_at() -> None:
    assert read("srt").text == "[00:00:01] Tea is warm and wet.\n\n[00:01:10] Drink it."
    assert read("vtt").text == "[00:00:01] Ann: Tea is warm."


def test_latex_keeps_headings_formulas_lists_tables_and_code() -> None:
    assert read("tex") == Extracted(
        text="## Making it\n\nCafé & bar cost 5% more, $a_1 < b$. See [the site](https://tea.test/). (Old.)\n\n"
        "1. Boil\n   - gently\n2. Pour\n\n| Leaf | Minutes |\n| --- | --- |\n| Sencha | 2 |\n\n```\nx = {1}\n```",
        title="On tea",
        author="A. Leaf , B. Cup",
        headings=("Making it",),
    )


@pytest.mark.parametrize("gzip", [True, False])
def test_a_web_archive_is_its_pages(gzip: bool) -> None:
    data = samples.a_web_archive(gzip=gzip)
    assert sniff_type(data) == "application/warc"
    assert read("warc", data).text == "# Tea\n\nhttps://tea.test/a\n\nTea is warm, and wet as well."


@pytest.mark.parametrize("name", ["eml", "mbox", "mhtml", "ipynb", "rtf", "srt", "warc"])
def test_bytes_that_are_not_of_the_format_are_broken(name: str) -> None:
    with pytest.raises(FetchError) as caught:
        read(name, b"\nno such thing")
    assert caught.value.reason == "error"


def test_a_message_in_utf_16_is_read() -> None:
    message = "From: leaf@garden.example\r\nSubject: Ferry\r\nDate: Tue, 5 May 2026 10:00:00 +0000\r\n\r\nIt sails at noon.\r\n"
    found = to_text(message.encode("utf-16"), name="a.eml")
    assert (found.title, found.published[:10], found.text.endswith("It sails at noon.")) == ("Ferry", "2026-05-05", True)


def test_the_fields_of_a_record_in_xml_keep_their_names_and_prose_has_none() -> None:
    record = "<country><name>Ruritania</name><leader>Queen Flavia</leader></country>"
    prose = "<p>It lies in the east.</p><p>Its <b>capital</b> is Strelsau.</p>"
    found = to_text(f"<book>{record}<about>{prose}</about></book>".encode(), name="a.xml")
    assert found.text == "name: Ruritania\nleader: Queen Flavia\nIt lies in the east.\nIts\ncapital\nis Strelsau."


def test_the_definitions_of_a_latex_source_are_no_text() -> None:
    source = r"\begin{document}\begin{enumerate}\def\labelenumi{\arabic{enumi}.}\item One\item Two\end{enumerate}\end{document}"
    assert to_text(source.encode(), name="a.tex").text == "1. One\n2. Two"


def test_a_page_that_was_saved_as_txt_is_read_as_a_page() -> None:
    page = (
        "<!DOCTYPE html><html><body><nav>menu</nav><article><p>The Corlett pier is 222 metres long.</p></article></body></html>"
    )
    assert to_text(page.encode(), name="pier.txt").text == "The Corlett pier is 222 metres long."


def test_a_listing_of_a_latex_source_keeps_its_signs() -> None:
    source = rb"""\documentclass{article}\begin{document}
\begin{lstlisting}
x = 1 < 2
\end{lstlisting}
Text.\end{document}"""
    assert to_text(source, name="a.tex").text == "```\nx = 1 < 2\n```\n\nText."
