"""Stories of the page where nothing is broken: ask, follow up, own files, keep, share, save, and another language."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.formats.documents import pdf
from tests.stories.visit import PHONE, Visit, axe, browser, printed_link, visit
from tests.stories.world import QUESTION, World

__all__ = ["axe", "browser", "visit"]

ANSWER = "The Moon is 384,400 km from Earth on average. [1]"
ORBIT = "How long does the Moon take to go round the Earth?"
TIDES = "What raises the tides of the oceans?"


def test_a_first_question_is_answered_with_its_source_and_its_evidence(world: World, visit: Visit, axe: str) -> None:
    person = visit(**PHONE)
    person.ask(QUESTION)
    person.finished()
    assert (person.text("#asked"), person.text("#answer")) == (QUESTION, ANSWER)
    assert person.text("#figures") == "○ 1 of 1 sentence found in the cited pages · 1 source"
    assert (person.text("#notes"), person.sticking_out(), person.scan(axe)) == ("", [], [])
    person.page.click("#answer .cite")
    person.page.wait_for_selector("#evidence mark")
    assert person.text("#evidence mark") == "The Moon is 384,400 km from Earth on average."
    assert (person.sticking_out(), person.trouble) == ([], [])


def test_a_follow_up_stands_below_what_it_follows_and_is_listed_with_it(world: World, visit: Visit) -> None:
    person = visit()
    person.ask(QUESTION)
    person.finished()
    first = person.page.url
    person.page.fill("#question", ORBIT)
    person.page.press("#question", "Enter")
    person.page.wait_for_url(lambda url: "/runs/" in url and url != first)
    person.finished()
    person.sees(QUESTION, "#thread")
    assert (person.text("#asked"), "27.3 days" in person.text("#answer")) == (ORBIT, True)
    person.open_history()
    assert person.page.locator("#runs-list > .day > ul > li").count() == 1
    questions = person.page.locator("#runs-list .q").all_inner_texts()
    assert (questions, person.trouble) == ([QUESTION, ORBIT], [])


def test_an_own_pdf_is_attached_and_answers(world: World, visit: Visit) -> None:
    path = world.folder / "report.pdf"
    path.write_bytes(pdf(["The trial concludes that clover raises the yield of barley by 14 percent."]))
    person = visit(**PHONE)
    person.page.set_input_files("#picker", path)
    person.sees("report.pdf", "#files")
    person.page.wait_for_selector("#files .done")
    person.page.select_option("#focus", "local")
    person.ask("By how much does clover raise the yield of barley?")
    person.finished()
    assert "clover raises the yield of barley by 14 percent" in person.text("#answer")
    assert person.page.locator("#source-list > li").count() == 1
    assert (person.sticking_out(), person.trouble) == ([], [])


def test_page_and_terminal_share_one_home_and_nothing_is_lost(world: World, visit: Visit) -> None:
    server = world.serve()
    person = visit(server)
    person.ask(QUESTION)
    person.finished()
    for question in (ORBIT, TIDES):
        assert world.run(question).code == 0
        person.open()
        person.ask(question)
        person.finished()
        assert person.text("#notes") == ""
    person.page.click("#show-knowledge")
    person.page.wait_for_selector("#knowledge-list li")
    listed = sorted(person.page.locator("#knowledge-list a").all_inner_texts())
    server.stop()
    with sqlite3.connect(next(world.home.rglob("knowledge.db"))) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    person = visit()
    person.page.click("#show-knowledge")
    person.page.wait_for_selector("#knowledge-list li")
    assert listed == sorted(person.page.locator("#knowledge-list a").all_inner_texts())
    assert [name for name in ("Moon facts", "Orbit of the Moon", "Tides") if name not in listed] == []


def test_two_tabs_show_one_run_to_its_end(world: World, visit: Visit) -> None:
    world.web.is_open.clear()
    server = world.serve()
    first, second = visit(server), visit(server)
    first.ask(QUESTION)
    second.page.goto(first.page.url)
    second.sees(QUESTION, "#asked")
    second.page.wait_for_selector("#stop", state="visible")
    world.web.is_open.set()
    for person in (first, second):
        person.finished()
        assert (person.text("#answer"), person.trouble) == (ANSWER, [])


def test_a_reload_in_the_middle_of_a_run_shows_the_run_to_its_end(world: World, visit: Visit) -> None:
    world.web.is_open.clear()
    person = visit(**PHONE)
    person.ask(QUESTION)
    person.page.wait_for_selector("#work-queries li")
    person.page.reload()
    person.sees(QUESTION, "#asked")
    world.web.is_open.set()
    person.finished()
    assert (person.text("#answer"), person.sticking_out(), person.trouble) == (ANSWER, [], [])


def test_a_reload_says_again_what_was_said_about_the_answer(world: World, visit: Visit) -> None:
    model = world.use_model()
    model.hold("answer")
    person = visit()
    person.ask(QUESTION)
    model.wait_for("answer")
    person.page.click("#stop")
    person.finished()
    notes = person.text("#notes")
    person.page.reload()
    person.finished()
    assert (person.text("#notes"), "without a model" in notes) == (notes, True)


def test_an_answer_is_saved_as_markdown_html_and_pdf(world: World, visit: Visit) -> None:
    person = visit()
    person.ask(QUESTION)
    person.finished()
    wanted = {"Markdown": b"The Moon is 384,400 km", "HTML": b"The Moon is 384,400 km", "PDF": b"%PDF"}
    for name, beginning in wanted.items():
        with person.page.expect_download() as download:
            person.page.click(f"#exports >> text='{name}'")
        assert beginning in Path(download.value.path()).read_bytes(), name
    assert (person.text("#notes"), person.trouble) == ("", [])


def test_a_shared_answer_is_read_by_somebody_without_the_page(world: World, visit: Visit) -> None:
    world.set(share=True)
    server = world.serve()
    person = visit(server)
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.ask(QUESTION)
    person.finished()
    person.page.click("#publish")
    person.sees("Copied: anyone who has this link", "#status")
    link = person.page.evaluate("() => navigator.clipboard.readText()")
    friend = visit(server, **PHONE)
    friend.page.context.clear_cookies()
    friend.page.goto(link)
    assert ANSWER in friend.text("body")
    assert friend.sticking_out() == []


def test_the_page_changes_its_language_and_stays_in_it(world: World, visit: Visit) -> None:
    person = visit(**PHONE)
    person.page.click("#show-setup")
    person.page.select_option("#settings-language", "de")
    person.sees("Einrichtung", "#setup-head")
    person.page.goto(printed_link(world))
    person.ask(QUESTION)
    person.finished()
    assert person.text("#figures") == "○ 1 von 1 Satz in den zitierten Seiten gefunden · 1 Quelle"
    assert (person.sticking_out(), person.trouble) == ([], [])


def test_without_a_model_a_question_about_the_rest_of_a_file_goes_on_from_the_answer(world: World, visit: Visit) -> None:
    path = world.folder / "lease.md"
    notice = "Either side may end the lease at the end of a month, and the notice period is three months from that day on."
    path.write_text(f"# Lease\n\nThe rent of the flat is 812 euros a month.\n\n## Notice period\n\n{notice}\n")
    person = visit()
    person.page.set_input_files("#picker", path)
    person.page.wait_for_selector("#files .done")
    person.page.select_option("#focus", "local")
    person.ask("What is the rent of the flat in the lease?")
    person.finished()
    person.sees("What is known about the notice period of the lease?", "#next-list")
    first = person.page.url
    person.page.click("#next-list button")
    person.page.wait_for_url(lambda url: "/runs/" in url and url != first)
    person.finished()
    assert ("three months" in person.text("#answer"), person.trouble) == (True, [])
