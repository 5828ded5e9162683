"""The report as a document: what is mended, what is noted, where it goes and what it is called."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

import pytest

from nexi.research.report import (
    LintedReport,
    SaveLocation,
    choose_folder,
    lint_report,
    make_file_name,
    render_document,
    render_front_matter,
)
from nexi.text.words import language_of
from nexi.types import Source

MOON, TIDE = Source(1, "https://moon.example/", "Moon"), Source(3, "https://tide.example/", "Tides")
SOURCES = (MOON, TIDE)


def place(cwd: str, *subfolders: str) -> SaveLocation:
    return SaveLocation(PurePosixPath(cwd), subfolders, PurePosixPath("/home/ada"), PurePosixPath("/tmp"))


@pytest.mark.parametrize("cwd", ["/home/ada", "/", "/usr", "/usr/local/share", "/etc", "/root", "/home", "/Users", "/tmp"])
def test_a_report_does_not_clutter_a_home_or_a_system_folder(cwd: str) -> None:
    assert str(choose_folder(place(cwd, "docs"))) == "/tmp"


@pytest.mark.parametrize(
    ("subfolders", "folder"),
    [
        (("notes", "docs", "research"), "research"),
        (("notes", "Reports", "src"), "Reports"),
        (("reports", "research"), "research"),
        (("notes", "doc", "Docs"), "Docs"),
        (("notes", "references", "ref"), "ref"),
        (("src", "documents"), ""),
        ((), ""),
    ],
)
def test_a_report_goes_into_a_folder_made_for_it_or_where_the_user_stands(subfolders: tuple[str, ...], folder: str) -> None:
    assert choose_folder(place("/home/ada/project", *subfolders)) == PurePosixPath("/home/ada/project") / folder


@pytest.mark.parametrize(("cwd", "is_system"), [("C:\\", True), ("C:\\Windows\\System32", True), ("C:\\work\\moon", False)])
def test_drive_roots_and_system_folders_of_windows_are_left_alone(cwd: str, is_system: bool) -> None:
    there = SaveLocation(PureWindowsPath(cwd), (), PureWindowsPath("C:\\Users\\ada"), PureWindowsPath("C:\\Temp"))
    assert (choose_folder(there) == there.temporary) is is_system


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Rust async runtimes", "nexi-research-rust-async-runtimes-a3.md"),
        ("How far?! (../../etc/passwd)", "nexi-research-far-etc-passwd-a3.md"),
        ("Wie groß ist der Mond?", "nexi-research-wie-gross-ist-der-mond-a3.md"),
        ("月球有多远？", "nexi-research-月球有多远-a3.md"),
        ("???", "nexi-research-report-a3.md"),
        ("x" * 200, f"nexi-research-{'x' * 32}-a3.md"),
        ("𠀀" * 200, f"nexi-research-{'𠀀' * 32}-a3.md"),
        ("word " * 40, f"nexi-research-{'-'.join(['word'] * 6)}-a3.md"),
    ],
)
def test_the_file_is_named_after_the_question(question: str, name: str) -> None:
    assert make_file_name(question, 0, 3) == name


def test_letters_and_digits_stay_within_the_alphabet() -> None:
    assert [make_file_name("q", *pair)[-5:-3] for pair in ((25, 9), (26, 10), (255, 255))] == ["z9", "a0", "v5"]


def test_front_matter_is_yaml_that_no_text_can_break() -> None:
    fields = {"question": 'a: "b"\n---\nc', "cost_usd": None, "pages": 3, "ok": True}
    assert render_front_matter(fields) == '---\nquestion: "a: \\"b\\"\\n---\\nc"\npages: 3\nok: true\n---\n'


def test_the_document_has_front_matter_text_sources_and_its_path() -> None:
    assert render_document("# Moon\n\nFar [1].\n", SOURCES, {"run": "3fa9c1"}, "reports/moon.md") == (
        '---\nrun: "3fa9c1"\n---\n\n# Moon\n\nFar [1].\n\n## Sources\n\n'
        "[1] Moon  \n    https://moon.example/\n[3] Tides  \n    https://tide.example/\n\n---\n\n*Saved as `reports/moon.md`*\n"
    )


def test_a_document_without_sources_or_path_ends_after_its_text() -> None:
    assert render_document("Nothing.", (), {}) == "---\n---\n\nNothing.\n"


@pytest.mark.parametrize(
    ("text", "linted"),
    [
        ("# Moon\n\nFar [1].", LintedReport("# Moon\n\nFar [1].", (MOON,))),
        ("Far [1] and wet [3].", LintedReport("Far [1] and wet [3].", SOURCES)),
        ("", LintedReport("", ())),
        (
            "<think>hm</think>Far [1].</answer>",
            LintedReport("Far [1].", (MOON,), ("tags of the model were left out",)),
        ),
        (
            "Far [1][9].",
            LintedReport("Far [1].", (MOON,), ("citations without a source were left out: [9]",)),
        ),
        ("Far [1].\n\n## Sources\n\n[1] https://moon.example/", LintedReport("Far [1].", (MOON,))),
        (
            "## Far\n\nIt is far [1].\n\n## Near\n\nNo.\n\n## Far\n\nIt is  far [1].",
            LintedReport("## Far\n\nIt is far [1].\n\n## Near\n\nNo.", (MOON,), ("the section 'Far' stood there twice",)),
        ),
        ("## Far\n\nOne [1].\n\n## Far\n\nTwo [1].", LintedReport("## Far\n\nOne [1].\n\n## Far\n\nTwo [1].", (MOON,))),
        ("Use `<think>` in code [1].", LintedReport("Use `<think>` in code [1].", (MOON,))),
    ],
)
def test_what_a_reader_should_not_see_is_mended_and_said(text: str, linted: LintedReport) -> None:
    assert lint_report(text, SOURCES, "How far is the Moon?") == linted


def test_a_report_in_another_script_than_the_question_is_noted() -> None:
    russian = "Луна находится далеко от Земли, и приливы следуют за ней каждый день [1]."
    assert lint_report(russian, SOURCES, "How far is the Moon from Earth?").notes == (
        "the report seems to be in another language than the question (Cyrillic letters, not Latin)",
    )
    assert lint_report(russian, SOURCES, "Как далеко находится Луна?").notes == ()
    assert lint_report("Far [1].", SOURCES, "月球有多远？").notes == ()


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("How far is the Moon from Earth, and what does it do to the tides?", "English"),
        ("Wie weit ist der Mond von der Erde entfernt und was macht er mit den Gezeiten?", "German"),
        ("Quelle est la distance de la Lune et comment agit-elle sur les marées?", "French"),
        ("¿Cuál es la distancia de la Luna y cómo influye en las mareas del mar?", "Spanish"),
        ("Qual è la distanza della Luna e come agisce sulle maree del mare per chi naviga?", "Italian"),
        ("Qual é a distância da Lua e como ela age nas marés do mar para quem navega?", "Portuguese"),
        ("Hoe ver is de maan van de aarde en wat doet zij met het getij?", "Dutch"),
        ("Moon distance Earth", ""),
    ],
)
def test_the_language_of_a_question_is_known_by_its_small_words(question: str, language: str) -> None:
    assert language_of(question) == language


def test_a_report_in_another_language_of_the_same_letters_is_noted() -> None:
    asked = "Wie weit ist der Mond von der Erde entfernt?"
    told = "The Moon is far from the Earth [1], and the tides are what it does to the sea."
    assert lint_report(told, SOURCES, asked).notes == (
        "the report seems to be in another language than the question (English, not German)",
    )
    assert lint_report(told, SOURCES, "How far is the Moon from the Earth?").notes == ()
