"""Formulas: LaTeX in answers becomes MathML, prices stay prices, and what cannot be read stays as it was written."""

from __future__ import annotations

import re

import pytest
from lxml import etree

from nexi.web.page.formulas import to_mathml
from nexi.web.page.view import html_of


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("E = mc^2", "<mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup>"),
        (r"\frac{a}{b_1}", "<mfrac><mrow><mi>a</mi></mrow><mrow><msub><mi>b</mi><mn>1</mn></msub></mrow></mfrac>"),
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"\sqrt[3]{x}", "<mroot><mrow><mi>x</mi></mrow><mrow><mn>3</mn></mrow></mroot>"),
        (r"\sum_{i}^n", "<munderover><mo>∑</mo><mrow><mi>i</mi></mrow><mi>n</mi></munderover>"),
        (r"\left( x \right.", '<mo stretchy="true">(</mo><mi>x</mi>'),
        (r"v \le 3.5\,\text{m/s}", '<mi>v</mi><mo>≤</mo><mn>3.5</mn><mspace width="0.17em"/><mtext>m/s</mtext>'),
        (r"x \in \mathbb{R}", "<mi>x</mi><mo>∈</mo><mi>ℝ</mi>"),
        (r"f' < \hat x", '<msup><mi>f</mi><mo>′</mo></msup><mo>&lt;</mo><mover accent="true"><mi>x</mi><mo>^</mo></mover>'),
    ],
)  # fmt: skip
def test_a_formula_is_written_as_mathml(source: str, expected: str) -> None:
    made = to_mathml(source)
    assert re.sub(r"^<math[^>]*><mrow>|</mrow></math>$", "", made) == expected
    assert etree.fromstring(made).get("aria-label") == source


@pytest.mark.parametrize(
    "source", [r"\foo{x}", "{x", "x}", "x^", "x^2^3", r"\text{a", "a & b", r"\frac{1}", "{" * 40 + "}" * 40, "x" * 3000, ""]
)
def test_what_cannot_be_read_is_no_formula(source: str) -> None:
    assert to_mathml(source) == ""


def test_formulas_stand_in_sentences_and_alone_and_nothing_else_is_taken_for_one() -> None:
    assert re.findall("<math[^>]*>", html_of(r"So $a_1 * b_2$, \(c\) and $$x^2$$ hold.")) == [
        '<math aria-label="a_1 * b_2">',
        '<math aria-label="c">',
        '<math display="block" aria-label="x^2">',
    ]
    for text in ("It costs $5 or $10.", "US$ 5 + 6$ more", "`$x^2$`", r"\$x^2$", "from $5 to $7"):
        assert "<math" not in html_of(text)
    assert html_of(r"$\nosuch{x}_1$") == "<p>$\\nosuch{x}_1$</p>\n"


def test_a_formula_cannot_carry_markup() -> None:
    made = html_of(r"$x < \text{<script>alert(1)</script>} \"onload=1$")
    assert "<script" not in made
    made = html_of(r"$\text{<img src=x>}_1$")
    assert "<img" not in made
