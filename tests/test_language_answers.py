"""Other languages: which one a text is in, where its sentences end, what its question words ask for, and what is said of it."""

from __future__ import annotations

import pytest

from evals import language_answers as languages_eval
from nexi.answers.citations import extract_citation_markers
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.questions import read_question
from nexi.text.languages import LANGUAGES, detect_language, find_asked_kind, strip_question_words
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import stem
from nexi.types import PageView


@pytest.mark.parametrize("code", languages_eval.LANGUAGES)
def test_pages_and_nearly_all_questions_are_recognised(code: str) -> None:
    pages, questions = languages_eval.read_language(code)
    assert (len(pages), len(questions)) == (10, 20)
    assert sum(detect_language(page["html"].partition("<p>")[2]) == code for page in pages) >= 9
    assert {detect_language(q.text) for q in questions} <= {code, ""}
    assert sum(detect_language(q.text) == code for q in questions) >= 17


def test_numbers_and_names_alone_are_in_no_language() -> None:
    assert [detect_language(text) for text in ("", "1911", "Merle Tarn")] == ["", "", ""]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("Length (m)\n3,264 m\n2,467 m\n2,220 m\nTay\nForth\nHumber\nOpened\nBridge", "", id="metres"),
        pytest.param("The bridges of Scotland by length\n3,264 m\n2,467 m\n2,220 m\nTay\nForth\nHumber", "en", id="a title"),
        pytest.param(
            "Peña 1\nMuñoz 2\nNuñez 3\nIbáñez 4\nSmith 5\nJones 6\nHall 7\nPoints won lost drawn place club", "", id="names"
        ),
        pytest.param(
            "La Paz\nLa Rioja\nLa Plata\nMass of goods by port and year\nLa Guaira\nLa Ceiba", "en", id="a word again"
        ),
        pytest.param("Quelle est la hauteur de l'église d'Ulm ?", "fr", id="elisions"),
    ],
)
def test_units_and_names_of_a_small_table_are_in_no_language(text: str, code: str) -> None:
    assert detect_language(text) == code


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Sie wurde am 14. Mai 1911 eröffnet. Das war 1911. Dann kam es.", 3),
        ("Mały ptak. Żywi się trzciną. Śpi.", 3),
        ("Kuş küçüktür. İsmi saz. Şarkı söyler.", 3),
        ("¿Cuándo fue? ¿Dónde está? ¡Ya!", 3),
        ("La Dra. Alma Reis desenhou. Foi em 1911.", 2),
        ("这是一座桥。它很长！真的？", 3),
        ("متى افتتح؟ افتتح في مايو. هذا جسر.", 3),
    ],
)
def test_sentences_end_at_their_ends_and_nowhere_else(text: str, sentences: int) -> None:
    assert len(list(sentence_bounds(text, 1000))) == sentences


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Wann wurde die Brücke eröffnet?", "date"),
        ("In welchem Jahr war das?", "date"),
        ("Combien d'habitants compte la ville ?", "number"),
        ("¿Dónde nació la pintora?", "place"),
        ("Chi ha scritto il romanzo?", "person"),
        ("Ile osób tam jest?", "number"),
        ("Köprü ne zaman açıldı?", "date"),
        ("桥有多长？", "number"),
        ("橋はいつ開通しましたか？", "date"),
        ("أين ولدت الرسامة؟", "place"),
        ("Was frisst der Vogel?", ""),
    ],
)
def test_question_words_say_what_is_asked_for(question: str, kind: str) -> None:
    assert find_asked_kind(question, detect_language(question)) == kind


def test_words_that_only_ask_are_left_out_of_chinese_and_japanese_questions() -> None:
    assert strip_question_words("梅尔桥是什么时候通车的？", "zh") == "梅尔桥 通车"
    assert strip_question_words("メルレ橋はいつ開通しましたか？", "ja") == "メルレ橋 開通し"
    assert strip_question_words("Wann war das?", "de") == "Wann war das?"


def test_words_are_stemmed_in_the_language_of_the_question() -> None:
    assert stem("gegründeten", "german") == stem("gegründete", "german")
    assert stem("running", "") == "run"
    assert read_question("Wie viele Brücken hat die Stadt?").stems == ("bruck", "stadt")
    assert read_question("How many bridges are in the town?").language == ""


def test_pages_in_the_language_of_the_question_are_preferred() -> None:
    pages = [
        PageView("https://a.example/", 1, "Ida Holm", "Ida Holm was a painter. She died in Lowick in 1931."),
        PageView(
            "https://b.example/", 2, "Ida Holm", "Ida Holm war eine Malerin. Sie starb 1931 in Lövik und wurde dort begraben."
        ),
    ]
    answer = compose_answer(read_question("Wo starb die Malerin Ida Holm?"), pages)
    assert {number for _, number in answer.lines} == {2}


def test_a_language_below_its_floor_is_named_and_a_sample_has_its_chance() -> None:
    figures = {"language": "de", "right": 80.0, "first": 70.0, "cited": 95.0, "verified": 99.0, "said": "-"}
    assert languages_eval.find_problems(figures, sampled=True) == []
    assert languages_eval.find_problems(figures, sampled=False) == ["language_answers: de has right 80.0, its floor is 90"]


def test_a_question_over_pages_in_another_language_says_so() -> None:
    pages, _ = languages_eval.read_language("en")
    question = languages_eval.Question("Wo wurde die Malerin Ida Holm geboren?", "Lowick", pages[1]["url"])
    (reply,) = languages_eval.ask_all(pages, [question])
    assert extract_citation_markers(reply.text)
    assert reply.said


def test_every_language_has_its_words() -> None:
    assert all(language.asks for language in LANGUAGES.values())
    assert all(len(language.months) >= 12 for code, language in LANGUAGES.items() if code not in ("zh", "ja"))
