"""Wrong answers without a model that reviewers quoted, over pages like those they came from."""

from __future__ import annotations

import pytest

from nexi.llm.extractive._evidence import Compare
from nexi.llm.extractive._quotation import join_quotations
from nexi.llm.extractive.composition import compose_answer, rate_pages
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView


def page(title: str, text: str, number: int = 1) -> PageView:
    return PageView(f"https://p{number}.example/{number}", number, title, f"# {title}\n\n{text}")


def prefers(wanted: str) -> Compare:
    """A reading model that finds a text near to any question where it has these words."""
    return lambda asked, texts: [0.92 if wanted in text else 0.78 for text in texts]


def answer(question: str, *pages: PageView, compare: Compare | None = None) -> str:
    found = compose_answer(read_question(question), pages, compare)
    return f"{found.short} {join_quotations(found.lines)}".strip()


EARTHQUAKE = page(
    "2008 Sichuan earthquake",
    "A medical team of 135 doctors and nurses left Beijing for the disaster area on the night of the quake, together with 150 "
    "from the Beijing Military Area Command, who brought two helicopters, tents for a field hospital, and enough supplies to "
    "work for ten days without any help from outside. The quake was felt in Beijing and Shanghai.",
)
ACTOR = page(
    "Arnold Ray",
    "Ray had a heart valve replacement in 1997, when a replacement heart valve made of his own tissue was put in by a surgeon. "
    "He works out each day and has said that his heart is well.",
)
YUAN = page(
    "Yuan dynasty",
    "The Yuan dynasty was the empire established by Kublai Khan, leader of a Mongolian clan. Annam, Burma, and Champa "
    "recognized Mongol hegemony and established tributary relations with the Yuan dynasty.",
)
GOVERNMENT = page(
    "Federal government of the United States",
    "The government of the United States has three branches:\n\n- the legislative branch, which makes laws\n- the executive "
    "branch, which carries them out\n- the judicial branch, which interprets them\n\n"
    "The branches of the government check one another.",
)
TEMPFILE = page(
    "tempfile — Generate temporary files",
    "This module creates temporary files and directories.\n\n## Examples\n\nCreate a temporary directory with the "
    "context manager:\n\n```\nwith tempfile.TemporaryDirectory() as tmpdirname:\n    print(tmpdirname)\n```\n",
)
PACKAGING = page(
    "bdist_rpm — Python packages",
    "The `bdist_rpm` command makes a directory for `rpm` in Python. The `--rpm-base` option names the directory.\n",
    2,
)
VENV = page(
    "venv — Creation of virtual environments",
    "A virtual environment is a Python environment that is created on top of an existing one, with its own set of packages in "
    "`site-packages`. When Python runs from a virtual environment, `sys.prefix` points to it. Scripts of a virtual environment "
    "have a shebang line that points to its interpreter.\n\nAvailability: not Emscripten, not WASI.",
)
MYSQL = page("MySQL options", "The option `--port` names the port of the server; the default port of MySQL is 3306.")
FTP = page("FTP", "The default port of FTP is 21. A server listens on its port for a client.", 2)
BALANCE = page(
    "Zorbco 10-K",
    "| | 2023 | 2022 |\n|---|---|---|\n| Other long-term assets | 3,381 | 2,841 |\n| TOTAL ASSETS | 59,268 | 55,556 |\n"
    "| Accounts payable | 16,278 | 14,172 |\n",
)
MICROSOFT = page(
    "Microsoft",
    "Microsoft Corporation is an American company that makes software. Microsoft was founded by Bill Gates and Paul Allen on "
    "April 4, 1975.\n\n## 2007–2011: Microsoft Azure, Windows Vista, Windows 7, and Microsoft Stores\n\n"
    "Windows 7 was released.",
)
LIGHTHOUSE = "The Quibberton lighthouse was painted turquoise by Marta Velling in 1987."
PROTESTS = page(
    "Torch relay",
    "The mayor spoke of deliberate disruptions... by people who gave no name. The relay ended at the river.",
)


@pytest.mark.parametrize(
    ("question", "pages", "said"),
    [
        ("What kind of team left Beijing?", (EARTHQUAKE,), "A medical team of 135 doctors and nurses left Beijing"),
        ("Ray had a heart valve replacement in what year?", (ACTOR,), "heart valve replacement in 1997"),
        ("Who founded the Yuan dynasty?", (YUAN,), "established by Kublai Khan"),
        ("mysql default port", (FTP, MYSQL), "3306"),
        ("When was Microsoft founded?", (MICROSOFT,), "on April 4, 1975"),
        ("What were the total assets of Zorbco in 2023?", (BALANCE,), "59,268"),
        ("Who gave deliberate disruptions?", (PROTESTS,), "deliberate disruptions... by people who gave no name. [1]"),
    ],
)
def test_the_sentence_that_answers_comes_first_and_is_not_cut_before_the_answer(
    question: str, pages: tuple[PageView, ...], said: str
) -> None:
    first = answer(question, *pages).split(" [")[0] + " [1]"
    assert said in first
    assert not first.startswith("…")


def test_branches_are_listed_and_not_only_named() -> None:
    assert answer("What are the three branches of government in the United States?", GOVERNMENT) == (
        "The government of the United States has three branches: [1]\n- the legislative branch, which makes laws [1]\n"
        "- the executive branch, which carries them out [1]\n- the judicial branch, which interprets them [1]"
    )


def test_a_how_to_is_answered_with_its_code_and_not_by_a_page_that_shares_words() -> None:
    question = "How do I make a temporary directory in Python?"
    found = answer(question, PACKAGING, TEMPFILE, compare=prefers("temporary directory with"))
    assert "with tempfile.TemporaryDirectory() as tmpdirname:" in found
    assert "bdist_rpm" not in found.split("```")[0]


def test_of_two_commands_that_are_compared_each_is_said_and_no_page_that_only_has_the_word_difference() -> None:
    restore = page("git-restore", 'See "Reset, restore and revert" in git for the differences between the three commands.')
    merge = page("git-merge", "git-merge joins two or more development histories together.", 2)
    rebase = page("git-rebase", "git-rebase reapplies commits on top of another base tip.", 3)
    found = answer(
        "What is the difference between git merge and git rebase?",
        *(restore, merge, rebase),
        compare=lambda asked, texts: [0.90 if "joins" in text or "reapplies" in text else 0.80 for text in texts],
    )
    assert found == (
        "- git-merge joins two or more development histories together. [2]\n"
        "- git-rebase reapplies commits on top of another base tip. [3]"
    )


def test_a_definition_comes_before_sentences_that_only_name_the_thing() -> None:
    found = answer("What is a virtual environment in Python?", VENV, compare=prefers("is created on top"))
    assert found.startswith("A virtual environment is a Python environment that is created on top of an existing one")


def test_a_sentence_that_two_pages_have_is_quoted_once() -> None:
    pages = page("Lighthouse", LIGHTHOUSE), page("Coast", LIGHTHOUSE, 2)
    assert answer("Who painted the Quibberton lighthouse turquoise?", *pages) == f"{LIGHTHOUSE} [1]"


def test_a_question_about_something_that_no_page_tells_of_is_withheld() -> None:
    taizong = page("Xuanzang", "He subsequently served Emperor Taizong and was made a general of the western states.")
    assert rate_pages("The States General was made up of what?", [taizong], prefers("states of the Netherlands")) != "yes"


def test_a_sentence_without_the_thing_asked_for_is_not_rated_yes() -> None:
    pharmacy = page("Pharmacy case", "In 2019 Andrea Anderson asked a pharmacy to fill a prescription and was turned away.")
    question = "What emergency contraceptive did Andrea Anderson seek?"
    assert rate_pages(question, [pharmacy], lambda asked, texts: [0.86] * len(texts)) != "yes"
