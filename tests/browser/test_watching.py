"""Work that can be watched: queries, pages, researchers and calls, while they happen and after a reload."""

from __future__ import annotations

from collections.abc import Callable

from rig.served import Stage
from tests.browser.scene import DEEP, QUESTION, Watched

Look = Callable[..., Watched]


def test_queries_and_pages_are_listed_before_there_is_an_answer_and_after_a_reload(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("answer")
    person.ask()
    person.sees("Moon facts", "#work-pages li")
    for _ in range(2):  # as it happened, and as the log tells it
        person.sees("results", "#work-queries li")
        person.sees("[1]", "#work-pages .site")
        person.sees("Thinking about", "#status")
        assert page.locator("#answer").inner_text() == ""
        assert page.locator("#timeline .lane-open").count() == 1
        page.reload()
        person.sees("Moon facts", "#work-pages li")
        page.wait_for_selector("#timeline .lane-open", state="attached")
    served.model.release()
    person.finished()
    assert not page.evaluate("document.getElementById('work').open")  # the answer takes its place
    assert page.inner_text("#work-sum").startswith("1 search · ")
    assert page.locator("#timeline .lane-open").count() == 0
    assert person.trouble == []


def test_a_researcher_opens_to_its_queries_pages_and_report_during_and_after(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("scrape")
    page.select_option("#effort", "deep")
    person.ask(DEEP)
    person.sees("1 search", "#researchers .is-working .counts")
    assert page.locator("#researchers > li").count() == 3
    page.click("#researchers > li >> nth=0")
    page.wait_for_selector("#researchers > li:first-child .queries li")
    assert page.url.endswith("#researcher-1.1")
    assert page.inner_text("#work-sum").startswith("Round 1 of ")
    served.model.release()
    person.finished()
    page.reload()
    person.finished()
    page.wait_for_selector("#researcher-1\\.1 .report h2")  # its address opens it
    told = page.inner_text("#researcher-1\\.1")
    assert "reported" in told
    assert page.locator("#researcher-1\\.1 .pages a").count() > 0
    assert "[1]" in page.inner_text("#researcher-1\\.1 .finding")
    assert person.trouble == []


def test_a_task_that_waits_for_a_researcher_is_in_the_list_from_the_plan_on(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    page.select_option("#effort", "deep")
    page.click("#more")
    page.check("#planned")
    person.ask(DEEP)
    page.wait_for_selector("#plan-tasks li")
    person.sees("The plan is waiting for you", "#status")
    planned = page.locator("#plan-tasks textarea").evaluate_all("(all) => all.map((one) => one.value)")
    assert page.is_hidden("#researchers")  # the form has them
    served.model.hold("search")
    page.click("#plan-go")
    page.wait_for_selector("#researchers > li")
    assert [text.split("\n")[1] for text in page.locator("#researchers > li").all_inner_texts()] == planned
    served.model.release()
    person.finished()


def test_a_quick_question_tells_its_work_in_sentences(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    page.evaluate(
        """() => {
          window.told = [];
          const status = document.getElementById("status");
          new MutationObserver(() => window.told.push(status.textContent)).observe(status, { childList: true, subtree: true });
        }"""
    )
    served.model.hold("answer")
    person.ask(QUESTION)
    person.sees("Thinking about", "#status")
    served.model.release()
    person.finished()
    assert [said for said in page.evaluate("window.told") if ":" in said or said.islower()] == []
