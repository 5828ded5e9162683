"""Exponents, indices, formulas and notes reach the text of every format, and no digit joins another number."""

from __future__ import annotations

import io
import zipfile

import pytest

from nexi.extract.notation import reveal_tex_scripts, write_lowered, write_raised
from nexi.extract.text import to_markdown
from nexi.formats import extract, to_text
from nexi.text.plain import fold_text

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
W = 'xmlns:w="w" xmlns:m="m" xmlns:mc="mc"'


def page(body: str) -> str:
    return to_markdown(f"<html><body><article><p>{body}</p></article></body></html>", "https://site.test/")


def pack(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def read_docx(paragraph: str, **parts: str) -> str:
    document = f"<w:document {W}><w:body><w:p>{paragraph}</w:p></w:body></w:document>"
    files = {"word/document.xml": document} | {f"word/{name}.xml": text for name, text in parts.items()}
    return extract(pack(files), DOCX, "").text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("5.97×10<sup>24</sup> kg", "5.97×10^24 kg"),
        ("10<sup>−3</sup> m<sup>2</sup>", "10^−3 m^2"),
        ("x<sup>2</sup>+y<sup>n+1</sup>", "x^2+y^(n+1)"),
        ("H<sub>2</sub>O, log<sub>10</sub>5, x<sub>max</sub>", "H₂O, log₁₀5, x_max"),
        ("Ca<sup>2+</sup>", "Ca^(2+)"),
        ("the 1<sup>st</sup> and M<sup>me</sup> Curie", "the 1st and Mme Curie"),
        ("an angle of 45 degrees.<sup>1</sup>", "an angle of 45 degrees.[1]"),
        ('a fact<sup class="reference"><a href="#n">[2]</a></sup>', "a fact[2]"),
        ('a fact<sup><a href="#n">3</a></sup>', "a fact[3]"),
        ('a fact.<a href="#n" role="doc-noteref">4</a>', "a fact.[4]"),
    ],
)
def test_raised_and_lowered_text_of_a_page_keeps_its_meaning(html: str, text: str) -> None:
    assert page(html) == text


WIKIPEDIA = (
    '<span class="mwe-math-element"><span style="display: none;"><math alttext="{E}"><semantics><mi>E</mi>'
    '<annotation encoding="application/x-tex">{\\displaystyle E={\\tfrac {1}{2}}mv^{2}}</annotation></semantics></math></span>'
    '<img aria-hidden="true" alt="E"></span>'
)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (f"The energy is {WIKIPEDIA} at low speed.", "The energy is $E={\\tfrac {1}{2}}mv^{2}$ at low speed."),
        (
            "<math><mi>V</mi><mo>=</mo><mfrac><mn>4</mn><mn>3</mn></mfrac><mi>π</mi><msup><mi>r</mi><mn>3</mn></msup></math>",
            "V = (4/3)πr^3",
        ),
        ("<math><msqrt><mn>2</mn></msqrt></math> and <math><mroot><mi>x</mi><mn>3</mn></mroot></math>", "√(2) and root(3, x)"),
        ('so <span class="MathJax_Preview"></span><script type="math/tex">a<b^2</script> holds', "so $a<b^2$ holds"),
        (
            'is <mjx-container><mjx-math aria-hidden="true"><mjx-mi>x</mjx-mi></mjx-math><mjx-assistive-mml><math><msup>'
            "<mi>x</mi><mn>2</mn></msup></math></mjx-assistive-mml></mjx-container> here",
            "is x^2 here",
        ),
        (
            'is <span class="katex"><span class="katex-mathml"><math><semantics><mi>c</mi><annotation encoding='
            '"application/x-tex">c^2</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">c2'
            "</span></span> here",
            "is $c^2$ here",
        ),
    ],
)
def test_a_formula_of_a_page_is_kept_once_in_whatever_forms_the_site_has_it(html: str, text: str) -> None:
    assert page(html) == text


def test_a_formula_of_thousands_of_elements_is_cut_and_the_page_stays() -> None:
    deep = "<mrow>" * 300 + "<mi>x</mi>" + "</mrow>" * 300
    assert page(f"before <math>{deep}</math> after {'word ' * 20}").startswith("before")
    wide = "<mi>x</mi>" * 6_000
    assert page(f"before <math>{wide}</math> after").endswith("x … after")


@pytest.mark.parametrize(
    "form",
    [
        "<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>{}</annotation></semantics></math>",
        "<math alttext='{}'><mi>x</mi></math>",
        "<script type='math/tex'>{}</script>",
    ],
)
def test_a_formula_of_a_hundred_kilobytes_is_cut_between_two_numbers_and_says_so(form: str) -> None:
    tex = "+".join(f"x_{{{n}}}" for n in range(100_000, 111_111))
    found = page(f"before {form.format(tex)} after")
    cut = found.removeprefix("before $").removesuffix(" …$ after")
    assert (19_000 < len(cut) <= 20_000, tex.startswith(cut), cut[-1].isalnum()) == (True, True, False)


def test_scripts_of_formulas_that_are_never_closed_cost_no_more_than_their_length() -> None:
    assert reveal_tex_scripts("<script type='math/tex'>x" * 50_000).startswith("<span>$x")


def test_a_word_document_keeps_exponents_formulas_and_notes_and_leaves_out_moved_text() -> None:
    text = read_docx(
        "<w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>23</w:t></w:r>"
        "<w:r><w:t> of H</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='subscript'/></w:rPr><w:t>2</w:t></w:r><w:r><w:t>O, </w:t>"
        "</w:r><m:oMath><m:r><m:t>V=</m:t></m:r><m:f><m:fPr/><m:num><m:r><m:t>4</m:t></m:r></m:num><m:den><m:r><m:t>3</m:t></m:r></m:den>"
        "</m:f><m:sSup><m:e><m:r><m:t>πr</m:t></m:r></m:e><m:sup><m:r><m:t>3</m:t></m:r></m:sup></m:sSup></m:oMath>"
        "<w:moveFrom><w:r><w:t>old place</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t> new place</w:t></w:r></w:moveTo>"
        "<w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:footnoteReference w:id='2'/></w:r>",
        footnotes=f"<w:notes {W}><w:footnote w:id='2'><w:p><w:r><w:t>Of 42 apples.</w:t></w:r></w:p></w:footnote></w:notes>",
    )
    assert text == "10^23 of H₂O, V=(4/3)πr^3 new place (Of 42 apples.)"


def test_an_opendocument_text_keeps_exponents_formulas_and_notes() -> None:
    names = 'xmlns:office="o" xmlns:text="t" xmlns:style="s" xmlns:draw="d" xmlns:xlink="x"'
    content = (
        f"<office:document-content {names}><office:automatic-styles><style:style style:name='T1'>"
        "<style:text-properties style:text-position='super 58%'/></style:style></office:automatic-styles><office:body>"
        "<office:text><text:p>10<text:span text:style-name='T1'>6</text:span> bricks<text:note><text:note-citation>1"
        "</text:note-citation><text:note-body><text:p>Red ones.</text:p></text:note-body></text:note> fill <draw:frame>"
        "<draw:object xlink:href='./Object 1'/></draw:frame></text:p></office:text></office:body></office:document-content>"
    )
    formula = "<math><semantics><mrow><mi>V</mi><mo>=</mo><msup><mi>a</mi><mn>3</mn></msup></mrow></semantics></math>"
    data = pack(
        {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content, "Object 1/content.xml": formula}
    )
    assert to_text(data, name="a.odt").text == "10^6 bricks (Red ones.) fill V = a^3"


def test_a_rich_text_keeps_exponents_and_footnotes() -> None:
    text = to_text(
        rb"{\rtf1 10{\super 6} of H{\sub 2}O.{\super\chftn}{\footnote\pard\plain Of 42 apples.\par} Then more.}", name="a.rtf"
    )
    assert text.text == "10^6 of H₂O. (Of 42 apples.) Then more."


def test_a_presentation_keeps_exponents_and_formulas() -> None:
    names = 'xmlns:p="p" xmlns:a="a" xmlns:m="m" xmlns:mc="mc" xmlns:r="r"'
    slide = (
        f"<p:sld {names}><p:sp><p:txBody><a:p><a:r><a:rPr/><a:t>10</a:t></a:r><a:r><a:rPr baseline='30000'/><a:t>6</a:t></a:r>"
        "<a:r><a:rPr/><a:t> is </a:t></a:r><mc:AlternateContent><mc:Choice><m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num>"
        "<m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></mc:Choice><mc:Fallback><a:r><a:t>ab</a:t></a:r></mc:Fallback>"
        "</mc:AlternateContent></a:p></p:txBody></p:sp></p:sld>"
    )
    relations = '<Relationships><Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>'
    files = {
        "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst><p:sldId r:id='r1'/></p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations,
        "ppt/slides/slide1.xml": slide,
    }
    assert "10^6 is (a/b)" in to_text(pack(files), name="a.pptx").text


def test_tex_keeps_its_exponents() -> None:
    source = rb"\begin{document}The mass is 10\textsuperscript{24} kg of H\textsubscript{2}O, or $10^{24}$.\end{document}"
    assert to_text(source, name="a.tex").text == "The mass is 10^24 kg of H₂O, or $10^{24}$."


def test_a_raised_number_is_never_compared_as_further_digits() -> None:
    assert fold_text("6.02×10²³") == "6.02×10^23"
    assert fold_text("m² and CO₂") == "m^2 and CO2"


@pytest.mark.parametrize(("before", "text"), [("", "1"), ("  ", "1")])
def test_raised_text_with_nothing_before_it_stays_as_it_is(before: str, text: str) -> None:
    assert write_raised(before, text) == text
    assert write_lowered(before, text) == text
