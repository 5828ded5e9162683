"""Messages, help, notices, prompts and the texts of the page use none of the words of tests/words.json."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wording import ROOT, WORDS, find_old_words, python_texts, script_texts, shown_texts

VOCABULARY = ROOT / "nexi" / "proof"  # its literals are words that answers may have, and no messages
SPEAKING = [
    path
    for folder in (ROOT / "nexi", ROOT / "integrations")
    for path in sorted(folder.rglob("*"))
    if path.suffix in (".py", ".js", ".html", ".md") and VOCABULARY not in path.parents
]

# A log is replayed by the digest of each request, so what requests hold keeps its wording, or old logs replay no more.
PART_OF_REQUESTS = {
    "nexi/prompts/system.md": "and go on with the user's question",
    "nexi/tools/specs.py": "Search what nexi already knows",
    "nexi/research/researcher.py": "Search what nexi already knows",
}


def find_wrong_words(path: Path) -> list[str]:
    kept = PART_OF_REQUESTS.get(path.relative_to(ROOT).as_posix(), "(?!)")
    texts = [(line, re.sub(kept, "", text)) for line, text in shown_texts(path)]
    return [f"{path.name}:{line}: {word}" for line, text in texts for word in find_old_words(text)]


@pytest.mark.parametrize("path", SPEAKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_nothing_in_the_words_that_stop_a_reader(path: Path) -> None:
    assert find_wrong_words(path) == []


@pytest.mark.parametrize("name", WORDS)
def test_every_word_of_the_list_is_found_in_its_example(name: str) -> None:
    assert [found.partition(":")[2] for found in find_old_words(WORDS[name]["example"])] == [f" write {WORDS[name]['instead']}"]


SOURCE = '''"""A docstring is for readers of the code."""
import click
_ONE = "word"
_WRONG = ConfigError("it is not set", fix=f"set {name!r} to a " "folder")
@click.command("find")
def find() -> None:
    """Help of a command."""
def helper() -> None:
    """Not for users."""
class Tools:
    """Not a tool."""
    async def nexi_find(self) -> None:
        """What a client reads."""
    def _inner(self) -> None:
        """Not offered."""
'''


def test_literals_and_the_docstrings_that_users_read_are_collected() -> None:
    texts = [(4, "it is not set"), (4, "set {} to a folder"), (7, "Help of a command."), (13, "What a client reads.")]
    assert sorted(python_texts(SOURCE)) == texts


def test_strings_of_a_script_are_collected_without_its_comments() -> None:
    script = '// not "this one"\nsay("one two", `three ${four}`); // nor "that one"\nload("/a//b");\n'
    assert list(script_texts(script)) == [(2, '"one two"'), (2, "`three ${four}`")]
