"""The charset of a page is found as browsers find it, and the bytes decide where nothing is declared."""

from __future__ import annotations

import pytest

from evals.encodings import PAGES, WAYS, LegacyPage
from nexi.extract import charset
from nexi.formats import extract

KOREAN = "서울은 대한민국의 수도이자 최대 도시이다. 한강을 끼고 있으며 인구는 약 천만 명이다."
JAPANESE = "高橋さんは東京の会社で働いています。日本語の文章です。これはテストです。"
LOOSE_SIGNS = [
    ("shift_jis", "cp932", "髙橋さんは①東京の㈱会社で働いています。"),
    ("x-sjis", "cp932", "髙島屋は①号館です。"),
    ("euc-kr", "cp949", "똠방각하와 펲시콜라를 파는 가게입니다."),
    ("ks_c_5601-1987", "cp949", "똠방각하는 드라마입니다."),
    ("gb2312", "gb18030", "朱镕基先生在北京的会议上发表了讲话。"),
    ("iso-8859-1", "cp1252", "Er sagte: „So ist’s recht“ – für 5 €."),
    ("windows-1251", "cp1251", "Москва — столица № 1: „Кремль“ и ещё…"),
    ("tis-620", "cp874", "กรุงเทพฯ – เมืองหลวง…"),
]


@pytest.mark.parametrize(("declared", "encoding", "text"), LOOSE_SIGNS)
@pytest.mark.parametrize("place", ["header", "meta"])
def test_a_declared_charset_is_read_as_browsers_read_it(declared: str, encoding: str, text: str, place: str) -> None:
    body = f'<html><head><meta charset="{declared}"></head><body>{text}</body></html>' if place == "meta" else text
    content_type = f"text/html; charset={declared}" if place == "header" else "text/html"
    assert text in charset.decode_body(body.encode(encoding), content_type)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.label)
@pytest.mark.parametrize("way", WAYS)
def test_twelve_pages_with_signs_of_vendors_are_whole_declared_or_not_and_as_files(page: LegacyPage, way: str) -> None:
    assert WAYS[way](page)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "髙橋"),
        ("cp932", "東京都"),
        ("cp932", "Name,City\nTaro,東京\n"),
        ("cp949", "안녕하세요"),
        ("cp949", "이름,나이\n홍길동,30\n"),
        ("gb18030", "北京"),
        ("gb18030", "姓名,年龄\n张三,30\n"),
        ("cp1251", "№ 5"),
        ("cp1251", "Цена: 100 руб."),
        ("cp1252", "café"),
        ("cp1252", "Ñandú: ¿qué?"),
        ("cp1252", "“It’s 5 €” – naïve…"),
    ],
)
def test_a_file_of_a_few_bytes_is_read_in_the_charset_in_which_it_is_ordinary_text(encoding: str, text: str) -> None:
    assert charset.decode_body(text.encode(encoding)) == text


def test_one_stray_byte_does_not_make_another_charset_of_a_declared_page() -> None:
    body = (JAPANESE * 9).encode("cp932") + b"\xff" + JAPANESE.encode("cp932")
    text = charset.decode_body(body, "text/html; charset=shift_jis")
    assert text.count(JAPANESE) == 10
    assert text.count("\ufffd") <= 1


def test_of_a_page_that_declares_three_charsets_the_text_is_whole() -> None:
    words = "Ärger über Größe, das café und 東京"
    declared = (
        '<?xml version="1.0" encoding="iso-8859-1"?><meta charset="shift_jis"><meta content="text/html; charset=windows-1251">'
    )
    for content_type in ("text/html; charset=utf-8", "text/html"):
        assert words in charset.decode_body(f"{declared}<p>{words}</p>".encode(), content_type)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "名前,年齢,住所\r\n佐藤太郎,30,東京\r\n髙橋淳,35,名古屋\r\n"),
        ("euc_kr", KOREAN),
        ("cp932", JAPANESE),
        ("euc_jp", JAPANESE),
        ("gb18030", "这是一个关于北京的故事，北京是中国的首都，有很多人住在那里。"),
        ("big5", "台北市是中華民國的首都，人口約二百五十萬。"),
        ("cp1251", "Москва — столица России, город федерального значения № 1."),
        ("cp1252", "Français, où étiez-vous l’été dernier ? À Orléans, près d’une forêt."),
        ("cp1253", "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας και η μεγαλύτερη πόλη της."),
    ],
)
def test_the_charset_of_a_page_that_declares_none_is_recognised(encoding: str, text: str) -> None:
    assert charset.decode_body(f"<p>{text * 3}</p>".encode(encoding)) == f"<p>{text * 3}</p>"


@pytest.mark.parametrize("label", ["punycode", "idna", "utf-7", "unicode_escape", "zip", "rot13"])
def test_a_codec_that_is_no_charset_of_the_web_is_never_used(label: str) -> None:
    assert charset.decode_body("Zürich & b\\u0041".encode(), f"text/plain; charset={label}") == "Zürich & b\\u0041"


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("Donâ€™t say â€œneverâ€\x9d", "Don’t say “never”"),
        ("Donâ\x80\x99t", "Don’t"),
        ("cafÃ© of 5 Âµm", "café of 5 µm"),
        ("itâ€™s a ðŸ˜€ face", "it’s a 😀 face"),
    ],
)
def test_text_that_was_encoded_twice_is_read_as_it_was_meant(text: str, mended: str) -> None:
    assert charset.undo_double_encoding(text) == mended


@pytest.mark.parametrize(
    "text", ["NÃO e CORAÇÃO", "A “broken” page shows â€™ for ’ – that’s mojibake", "âme, château", "plain"]
)
def test_text_of_which_only_some_signs_look_so_stays(text: str) -> None:
    assert charset.undo_double_encoding(text) == text


def test_a_page_that_was_encoded_twice_is_quoted_as_it_was_meant() -> None:
    page = "<p>The mayor didn’t say how much – about €5 – it costs.</p>".encode().decode("cp1252").encode()
    assert extract(page, "text/html; charset=utf-8", "").text == "The mayor didn’t say how much – about €5 – it costs."
