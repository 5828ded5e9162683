"""With no model, judgements follow the words: what is covered, what is missing, what to read and what to ask."""

from __future__ import annotations

from nexi.knowledge import coverage
from nexi.structured.ranking import Assessment
from nexi.types import Hit, Passage

QUESTION = "When did Iris Quill study the barn owl in Norway?"


def passage(text: str, url: str = "http://a.test/", title: str = "") -> Passage:
    return Passage(url, url, 0, text, title=title)


def test_names_and_numbers_weigh_double_and_small_words_nothing() -> None:
    assert coverage.weights_of("When did Iris Quill feed 12 owls?") == {
        "iri": 2.0,
        "quill": 2.0,
        "feed": 1.0,
        "12": 2.0,
        "owl": 1.0,
    }


def test_a_page_that_holds_every_word_is_complete() -> None:
    verdict = coverage.assess_coverage(QUESTION, [passage("Iris Quill studied barn owls in Norway from 1920.")])
    assert verdict == Assessment(1.0, "6 of 6 words of the question are covered", ())


def test_gaps_are_the_questions_own_words() -> None:
    verdict = coverage.assess_coverage(QUESTION, [passage("A barn owl hunts by night.")])
    assert verdict.gaps == ("Iris Quill study", "Norway")
    assert verdict.score < 0.6


def test_words_gathered_from_many_pages_count_less_than_on_one_unless_a_title_names_them() -> None:
    apart = [passage("Iris Quill studied owls.", "http://a.test/1"), passage("A barn in Norway.", "http://a.test/2")]
    titled = [apart[0], passage("A barn in Norway.", "http://a.test/2", "Barn (Norway)")]
    scores = [coverage.assess_coverage(QUESTION, found).score for found in (apart, titled)]
    assert scores[0] < scores[1] == 1.0


def test_nothing_found_is_nothing_known() -> None:
    assert coverage.assess_coverage(QUESTION, []).score == 0.0
    assert coverage.assess_coverage("", []) == Assessment(0.0, "0 of 0 words of the question are covered", ())


def test_hits_that_hold_the_question_are_worth_reading_and_others_are_not() -> None:
    hits = [
        Hit("http://a.test/fox", "Fox", "A fox sleeps."),
        Hit("http://a.test/iris-quill", "Iris Quill", "She studied the barn owl in Norway."),
    ]
    scores = {hits[s.index].title: s.score for s in coverage.rank_hits(QUESTION, hits)}
    assert scores["Iris Quill"] > 0.7 > scores["Fox"]


def test_a_hit_that_holds_what_the_best_leaves_out_is_worth_reading_too() -> None:
    hits = [
        Hit("http://a.test/1", "Arthur Lubin", "A film director."),
        Hit("http://a.test/2", "Lubin", "A village."),
        Hit("http://a.test/3", "Ivan Ivanovsky", "A director of films."),
    ]
    scores = coverage.rank_hits("Who was born first, Ivan Ivanovsky or Arthur Lubin?", hits)
    assert [hits[s.index].title for s in scores if s.score > 0.7] == ["Arthur Lubin", "Ivan Ivanovsky"]


def test_no_hit_is_worth_reading_when_none_holds_more_than_a_word() -> None:
    hits = [Hit(f"http://a.test/{i}", "Fox", "A fox in a barn.") for i in range(3)]
    assert max(s.score for s in coverage.rank_hits(QUESTION, hits)) <= 0.7


def test_refined_queries_are_two_or_three_and_new() -> None:
    queries = coverage.refine_queries(QUESTION, QUESTION)
    assert queries == ("Iris Quill", "Iris Quill study barn owl Norway", "Iris Quill Norway")
    assert QUESTION not in queries


def test_hints_put_the_question_under_the_heading_that_fits() -> None:
    hints = coverage.hint_queries(
        "How does the owl hunt?", [("Owl", ("Food", "How it hunts")), ("Owl", ("Food", "How it hunts"))]
    )
    assert hints == ("Owl How it hunts owl hunt",)
