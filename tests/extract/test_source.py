"""What no reader sees is cut out of the source, and nothing else is."""

from __future__ import annotations

import pytest

from nexi.extract.markup_limits import remove_invisible


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        ("", ""),
        ("<p>a</p>", "<p>a</p>"),
        ("a<script>if (a</b>c) x('</div>')</script>b", "ab"),
        ("a<SCRIPT src=x></SCRIPT >b<style media='>'>p{}</style>c", "abc"),
        ("a<script>x</SCRIPT>b<script>y</script>c", "abc"),
        ("a<!-- <script> -->b<!-->c<!--->d", "abcd"),
        ("a<svg class=i><path/><title>t</title></svg>b<svg/>c", "ab<svg/>c"),
        ("<title>the <script> tag</title>b<script>x</script>c", "<title>the <script> tag</title>bc"),
        ("<textarea><!-- </textarea>b<!-- x -->c", "<textarea><!-- </textarea>bc"),
        ('a<script type="application/ld+json">{"x":1}</script>b', 'a<script type="application/ld+json">{"x":1}</script>b'),
        ("a<scripted>b</scripted><styles>c", "a<scripted>b</scripted><styles>c"),
        ("a<script>never ended", "a<script>never ended"),
        ("a<!-- never ended <script>x</script>", "a<!-- never ended <script>x</script>"),
        ("<script" * 3, "<script" * 3),
    ],
)
def test_scripts_styles_drawings_and_comments_are_cut_out(html: str, kept: str) -> None:
    assert remove_invisible(html) == kept
