"""The file of results, written as answers come."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.bench import BenchRow, Results
from nexi.errors import ConfigError
from tests.raising import has_code

ABOUT = {"model": "extractive", "effort": "m"}


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [
        BenchRow("a", "An answer [1].", ("http://x.test/",), ("http://x.test/",), 1, 2, 30, 0.01, 1.5, 1, 1, 0, "abc"),
        BenchRow("b"),
    ]
    results = Results.open(path, ABOUT)
    for row in rows:
        results.add(row)
    again = Results.open(path, ABOUT)
    assert again.rows == {"a": rows[0], "b": rows[1]}
    assert (again.cost, again.damaged) == (0.01, 0)


def test_a_torn_line_is_left_out_and_the_next_begins_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results.open(path, ABOUT).add(BenchRow("a", "one"))
    with path.open("ab") as file:
        file.write(b'{"id": "b", "answ')
    results = Results.open(path, ABOUT)
    assert (list(results.rows), results.damaged) == (["a"], 1)
    results.add(BenchRow("b", "two"))
    assert Results.open(path, ABOUT).rows == {"a": BenchRow("a", "one"), "b": BenchRow("b", "two")}


def test_the_later_of_two_rows_counts(tmp_path: Path) -> None:
    results = Results.open(tmp_path / "r.jsonl", ABOUT)
    results.add(BenchRow("a", error="timeout: slow"))
    results.add(BenchRow("a", "now"))
    assert Results.open(tmp_path / "r.jsonl", ABOUT).rows == {"a": BenchRow("a", "now")}


def test_results_of_another_model_are_not_mixed(tmp_path: Path) -> None:
    Results.open(tmp_path / "r.jsonl", ABOUT)
    with pytest.raises(ConfigError, check=has_code("config", "r.jsonl")) as caught:
        Results.open(tmp_path / "r.jsonl", {**ABOUT, "model": "other"})
    assert caught.value.cause == "its model is 'extractive', not 'other'"


def test_a_file_of_something_else_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("precious\n")
    with pytest.raises(ConfigError, check=has_code("config", "r.jsonl")):
        Results.open(path, ABOUT)
    assert path.read_text() == "precious\n"


@pytest.mark.parametrize("line", ["[]", "{}", '{"id": 3}', '{"id": "a", "seconds": "x"}', '{"id": "a", "answer": 3}', "null"])
def test_a_line_of_somebody_else_is_counted_as_damaged(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    Results.open(path, ABOUT)
    with path.open("a") as file:
        file.write(line + "\n")
    again = Results.open(path, ABOUT)
    assert (again.rows, again.damaged) == ({}, 1)


def test_a_failure_is_tried_again() -> None:
    assert [BenchRow("a", error=e).is_done for e in ("", "no_evidence: nothing", "timeout: slow")] == [True, False, False]
