"""The figures of a bench, its table and its plot."""

from __future__ import annotations

from xml.etree import ElementTree

from nexi.bench import BenchQuestion, BenchRow, group_figures, render_plot, render_table

QUESTIONS = [
    BenchQuestion("a", "When?", ("1890",), "date"),
    BenchQuestion("b", "Who?", ("Ann",), "name"),
    BenchQuestion("c", "Where?", ("Leith",), "name"),
    BenchQuestion("d", "Why?", ("So",), "name"),
]
ROWS = {
    "a": BenchRow("a", "In 1890 [1].", ("u",), ("u",), 2, 3, 100, 0.5, 1.0, 1, 1),
    "b": BenchRow("b", "Bob did [1] [2].", ("u", "v"), ("u", "v"), 4, 3, 300, 0.25, 3.0, 0, 1),
    "c": BenchRow("c", seconds=9.0, error="timeout: slow"),
}


def test_a_question_that_was_not_asked_counts_for_nothing_and_a_failure_as_wrong() -> None:
    every = group_figures(QUESTIONS, ROWS)[0]
    assert (every.asked, every.failed, round(every.correct.percent, 1), every.sentences.percent) == (3, 1, 33.3, 50.0)
    assert (every.pages, every.citations, every.tokens, every.seconds, every.slowest, every.cost) == (
        2.0,
        1.0,
        400 / 3,
        3.0,
        9.0,
        0.75,
    )


def test_each_kind_has_its_own_line() -> None:
    assert render_table(group_figures(QUESTIONS, ROWS)) == (
        "| questions | asked | correct % (95 %) | F1 | sentences found % | words | citations | pages | tokens | seconds "
        "| cost $ | failed |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        "| all | 3 | 33.3 (6 to 79) | 22.2 | 50.0 of 2 | 2 | 1.0 | 2.0 | 133 | 3.0 | 0.7500 | 1 |\n"
        "| date | 1 | 100.0 (21 to 100) | 66.7 | 100.0 of 1 | 3 | 1.0 | 2.0 | 100 | 1.0 | 0.5000 | 0 |\n"
        "| name | 2 | 0.0 (0 to 66) | 0.0 | 0.0 of 1 | 2 | 1.0 | 2.0 | 150 | 6.0 | 0.2500 | 1 |\n"
    )


def test_an_unknown_price_makes_the_cost_unknown() -> None:
    assert group_figures(QUESTIONS[:1], {"a": BenchRow("a", "x", cost=None)})[0].cost is None


def test_the_plot_is_svg_whatever_the_names_are() -> None:
    rows = {"a": ROWS["a"], "b": ROWS["b"]}
    questions = [BenchQuestion("a", "When?", ("1890",), "<b>&\x00"), BenchQuestion("b", "Who?", ("Ann",), "name")]
    times = [(1.0, True), (3.0, False)]
    drawn = ElementTree.fromstring(render_plot('a"<&\x01>.jsonl', group_figures(questions, rows), times))  # noqa: S314 - our own
    texts = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert 'a"<& >.jsonl' in texts
    assert [t for t in texts if t and t.endswith("%")] == ["50.0 %", "50.0 %", "100.0 %", "100.0 %", "0.0 %", "0.0 %"]


def test_a_bench_without_times_has_a_plot_too() -> None:
    assert render_plot("none", [], []).startswith("<svg ")
