"""`nexi table` from a user's side: the screen, files of several forms, and what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command


@pytest.fixture
def heron(tmp_path: Path) -> Path:
    file = tmp_path / "heron.md"
    file.write_text("# Heron\n\nWeight: 5.1 kg\n\nPrice: CHF 8,900\n")
    return file


def test_a_table_is_printed_with_where_each_value_stands(online: Command, heron: Path) -> None:
    done = online("table", "price, weight, colour", str(heron))
    assert (done.code, done.out) == (
        0,
        "| Document | price | weight | colour |\n| --- | --- | --- | --- |\n| heron.md | CHF 8,900 | 5.1 kg | not stated |\n"
        "\n## Where each value stands\n\n- heron.md, price: “Price: CHF 8,900” (under “Heron”)\n"
        "- heron.md, weight: “Weight: 5.1 kg” (under “Heron”)\n",
    )


def test_many_documents_are_named_on_stderr_as_they_are_read(online: Command, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.md").write_text(f"# Heron {number}\n\nWeight: {number} kg\n")
    done = online("table", "weight", str(folder))
    assert (done.code, sorted(done.err.split())) == (0, ["0.md", "1.md", "2.md", "3.md", *["read"] * 4])


def test_the_ending_of_the_file_says_the_form_and_nothing_is_overwritten(online: Command, heron: Path, tmp_path: Path) -> None:
    made = tmp_path / "out.xlsx"
    done = online("table", "price", str(heron), "-o", str(made))
    assert (done.code, made.read_bytes()[:2]) == (0, b"PK")
    again = online("table", "price", str(heron), "-o", str(made))
    assert (again.code, "already exists" in again.err) == (1, True)


def test_json_is_one_object_and_nothing_found_is_exit_six(online: Command, heron: Path) -> None:
    done = online("table", "--json", "altitude", str(heron))
    assert (done.code, json.loads(done.out)["rows"][0]["cells"][0]["stated"]) == (6, False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("price", "/nowhere/at/all"), "cannot be read"),
        (("price", ""), "the name is empty"),
        ((" , ", "."), "the table has no columns"),
        (("price", ".", "--format", "xlsx"), "a workbook needs a name"),
    ],
)
def test_what_cannot_be_a_table_is_said_with_a_fix(online: Command, arguments: tuple[str, ...], told: str) -> None:
    done = online("table", *arguments)
    assert done.code != 0
    assert told in done.err
