"""Follow-up questions without a model: from headings and names of the pages that were read, in the language of the question."""

from __future__ import annotations

import pytest

from nexi.answers.follow_ups import AnswerPage, make_follow_ups

LONG = "Much can be said about it, and this section says a good deal of that in a row of plain sentences. "
ENGLISH = f"""# Moon

The Moon is the only natural satellite of Earth. It orbits at an average distance of 384,400 km.

## Orbit

It orbits at an average distance of 384,400 km. {LONG}

## 2.1 Physical characteristics

The characteristics of the crust were measured by the crew of Neil Armstrong. {LONG}

## In popular culture

It is a symbol in popular culture, from old tales to films. {LONG}

## Observing the far side

{LONG}

## How to photograph an eclipse

{LONG}

## Who owns the land on the Moon?

{LONG}

## Too short

Nothing.

## See also

{LONG}

## SYNOPSIS

{LONG}

## Part 2

{LONG}

## How it works

{LONG}
"""
GERMAN = f"""# Mond

Der Mond ist der einzige natürliche Satellit der Erde und hat eine mittlere Entfernung von 384.400 km.

## Entstehung

Der Mond entstand nach der Theorie durch einen Zusammenstoß der Erde mit einem Körper von der Größe des Mars, und das ist
lange her. Die Proben, die Neil Armstrong mit nach Hause brachte, zeigen es.

## Einzelnachweise

{LONG}
"""
FRENCH = """# Lune

La Lune est le seul satellite naturel de la Terre et se trouve à une distance moyenne de 384 400 km de la Terre.

## Formation

La Lune est née d'une collision entre la Terre et un corps de la taille de Mars, et les roches de la mission le montrent.
"""
SPANISH = """# Luna

La Luna es el único satélite natural de la Tierra y está a una distancia media de 384 400 km de la Tierra.

## Formación

La Luna se formó por la colisión de la Tierra con un cuerpo del tamaño de Marte, y las rocas de la misión lo muestran.
"""
CHINESE = (
    "# 月球\n\n月球是地球唯一的天然卫星。\n\n## 形成\n\n" + "大碰撞说认为月球是由一颗天体与地球碰撞后形成的碎片聚集而成的。" * 4
)
ARABIC = (
    "# القمر\n\nالقمر هو التابع الطبيعي الوحيد للأرض.\n\n## التكوّن\n\n" + "تقول الفرضية إن القمر تكوّن من حطام تصادم كبير. " * 4
)


def test_headings_that_the_answer_leaves_out_become_questions_of_their_own_form() -> None:
    page = AnswerPage("Moon - Wikipedia", ENGLISH)
    asked: list[str] = []
    answer = "It orbits at an average distance of 384,400 km [1]."
    for _ in range(4):
        asked += make_follow_ups("How far is the Moon from Earth?", " ".join([answer, *asked]), [page])
    assert list(dict.fromkeys(asked)) == [
        "What is known about the physical characteristics of the Moon?",
        "What is known about the Moon in popular culture?",
        "What does Neil Armstrong have to do with the Moon?",
        "How does observing the far side work?",
        "How do you photograph an eclipse?",
        "Who owns the land on the Moon?",
        "What does “Moon - Wikipedia” say?",
    ]


@pytest.mark.parametrize(
    ("question", "answer", "title", "text", "questions"),
    [
        (
            "Wie weit ist der Mond von der Erde entfernt?",
            "Es sind 384.400 km [1].",
            "Mond – Wikipedia",
            GERMAN,
            (
                "Was ist über „Mond“ zum Thema „Entstehung“ bekannt?",
                "Was hat Neil Armstrong mit „Mond“ zu tun?",
                "Was steht in „Mond – Wikipedia“?",
            ),
        ),
        (
            "À quelle distance de la Terre est la Lune ?",
            "À 384 400 km de la Terre [1].",
            "Lune",
            FRENCH,
            ("Que sait-on de « Lune » au sujet de « Formation » ?", "Que dit « Lune » ?"),
        ),
        (
            "¿A qué distancia está la Luna de la Tierra?",
            "Está a 384 400 km [1].",
            "Luna",
            SPANISH,
            ("¿Qué se sabe de «Luna» en cuanto a «Formación»?", "¿Qué dice «Luna»?"),
        ),
        ("月球离地球有多远？", "384400公里[1]。", "月球", CHINESE, ("关于月球的“形成”，有哪些已知信息？",)),
        (
            "كم يبعد القمر عن الأرض؟",
            "384400 كم [1].",
            "القمر",
            ARABIC,
            ("ما المعروف عن «التكوّن» في موضوع «القمر»؟", "ماذا تقول صفحة «القمر»؟"),
        ),
        ("Kuinka kaukana Kuu on?", "384400 km [1].", "Mond", GERMAN, ()),
    ],
    ids=["de", "fr", "es", "zh", "ar", "another"],
)
def test_questions_are_in_the_language_of_the_one_that_was_asked(
    question: str, answer: str, title: str, text: str, questions: tuple[str, ...]
) -> None:
    assert make_follow_ups(question, answer, [AnswerPage(title, text)]) == questions


def test_a_subject_has_the_form_it_has_in_the_question() -> None:
    text = f"# Owl\n\nOwls are birds, and every owl has an anatomy.\n\n## Anatomy\n\n{LONG}"
    assert make_follow_ups("How do owls hunt?", "Owls hunt at night [1].", [AnswerPage("Owl", text)]) == (
        "What is known about the anatomy of owls?",
    )


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("HTTP and MCP", "What is there to know about “HTTP and MCP”?"),
        ("Names, and what removal means", "What is there to know about “names, and what removal means”?"),
        ("Installing the plugin", "How does installing the plugin work?"),
        ("Create a backup", "How do you create a backup?"),
        ("Building materials", ""),
        ("More on spaces", ""),
        ("What is a quota", "What is a quota?"),
    ],
)
def test_a_heading_that_names_no_thing_has_another_form_or_none(heading: str, question: str) -> None:
    text = f"# Spaces\n\nA space is a space of a person, and the names of spaces are theirs.\n\n## {heading}\n\n{LONG}"
    asked = make_follow_ups("What is a space?", "A place [1].", [AnswerPage("Spaces", text)])
    assert [each for each in asked if "Spaces" not in each] == ([question] if question else [])


def test_a_page_about_something_else_is_named_in_its_question() -> None:
    text = f"# Connections\n\nThe server listens.\n\n## Connection settings\n\n{LONG}"
    assert make_follow_ups("mysql default port", "3306 [1].", [AnswerPage("Connections", text)])[0] == (
        "What does “Connections” say about connection settings?"
    )


def test_without_pages_there_are_none() -> None:
    assert make_follow_ups("How far is the Moon?", "Far.", []) == ()
