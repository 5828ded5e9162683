"""Files of questions, as people keep them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nexi.bench import BenchQuestion, _QuestionFile, read_questions
from nexi.errors import ConfigError, StoreError
from tests.raising import has_code


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_our_own_form(tmp_path: Path) -> None:
    row = {"id": "a1", "question": "Who?", "answers": ["Ann", "Ann Lee"], "kind": "single", "gold_urls": ["http://x.test/"]}
    path = written(tmp_path, "q.jsonl", json.dumps(row) + "\n\n")
    assert read_questions(path) == _QuestionFile(
        (BenchQuestion("a1", "Who?", ("Ann", "Ann Lee"), "single", ("http://x.test/",)),)
    )


def test_simpleqa_in_csv(tmp_path: Path) -> None:
    path = written(tmp_path, "s.csv", 'metadata,problem,answer\n"{\'topic\': \'x\'}","Who, in ""1990""?",Ann Lee\n')
    (asked,) = read_questions(path).questions
    assert (asked.text, asked.answers) == ('Who, in "1990"?', ("Ann Lee",))


def test_frames_in_tsv(tmp_path: Path) -> None:
    head = "Unnamed: 0\tPrompt\tAnswer\treasoning_types\twiki_links\n"
    path = written(tmp_path, "f.tsv", head + "0\tHow many?\t12\tNumerical\t['https://w.test/A', 'https://w.test/B']\n")
    asked = BenchQuestion("0", "How many?", ("12",), "Numerical", ("https://w.test/A", "https://w.test/B"))
    assert read_questions(path) == _QuestionFile((asked,))


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"Question": "Q?", "Answer": {"value": "Ann", "aliases": ["A. Lee"]}}, ("Ann", "A. Lee")),
        ({"query": "Q?", "answers": {"text": ["Ann", "Ann"], "answer_start": [1, 2]}}, ("Ann",)),
        ({"input": "Q?", "target": 12}, ("12",)),
        ({"question": "Q?", "answer": True}, ("yes",)),
        ({"question": "Q?", "expected_answer": "['a', 'b']"}, ("a", "b")),
        ({"question": "Q?", "answer": "[sic] and so on"}, ("[sic] and so on",)),
    ],
)
def test_other_names_and_shapes_of_answers(tmp_path: Path, row: dict[str, object], answers: tuple[str, ...]) -> None:
    (asked,) = read_questions(written(tmp_path, "q.jsonl", json.dumps(row))).questions
    assert (asked.text, asked.answers) == ("Q?", answers)


@pytest.mark.parametrize("text", ['[{"question": "Q?", "answer": "A"}]', '{"data": [{"question": "Q?", "answer": "A"}]}'])
def test_one_json_value(tmp_path: Path, text: str) -> None:
    assert [q.text for q in read_questions(written(tmp_path, "q.json", text)).questions] == ["Q?"]


def test_a_packed_file_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(gzip.compress("\ufeff".encode() + b'{"question": "Q?", "answer": "A"}\n'))
    assert [q.text for q in read_questions(path).questions] == ["Q?"]


def test_rows_that_cannot_be_used_are_named_and_skipped(tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "question": "Q?", "answer": "A"}',
        "{broken",
        '{"id": 2, "question": "Q2?"}',
        '{"answer": "A"}',
        "[1, 2]",
        '{"id": 1, "question": "Other?", "answer": "B"}',
        '{"id": 1, "question": "Q?", "answer": "A"}',
        '{"question": "' + "x" * 30_000 + '", "answer": "A"}',
    ]
    found = read_questions(written(tmp_path, "q.jsonl", "\n".join(lines)))
    assert [q.id for q in found.questions] == ["1"]
    assert [problem.partition(" (")[0] for problem in found.bad] == [
        "line 2: invalid JSON",
        "line 3: no answer",
        "line 4: no question",
        "line 5: not an object with a question and an answer",
        "line 6: duplicate id 1",
        "line 7: duplicate question",
        "line 8: the question is too long",
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "just words\n", "[]", "{}", "\x00\x01", '{"question": "Q?"}'])
def test_a_file_without_questions_is_refused_with_what_it_needs(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, check=has_code("config", "q.jsonl")) as caught:
        read_questions(written(tmp_path, "q.jsonl", text))
    assert caught.value.fix == 'each row needs a question and its answer, as in {"question": "...", "answer": "..."}'


@pytest.mark.parametrize("data", [None, b"\x1f\x8bbroken"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "q.jsonl"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(StoreError, check=has_code("store", "q.jsonl")):
        read_questions(path)


def test_a_question_without_an_id_keeps_the_same_one(tmp_path: Path) -> None:
    one = read_questions(written(tmp_path, "a.jsonl", '{"question": "Q?", "answer": "A"}')).questions[0].id
    other = read_questions(written(tmp_path, "b.csv", "question,answer\nQ?,A\n")).questions[0].id
    assert one == other
