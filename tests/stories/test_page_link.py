"""Stories of the link that `nexi serve` prints: it signs a browser in, others see how to, and a new token ends it."""

from __future__ import annotations

from typing import Any

from tests.stories.visit import SCREEN, Visit, browser, printed_link, visit
from tests.stories.world import QUESTION, World

__all__ = ["browser", "visit"]

CLOSED = """\
nexi needs its token
This nexi keeps its owner's questions, answers and files, so its page opens only with its token.
If you started it, open the link that nexi serve printed, or enter here what nexi token prints:
Token Open
If this browser has opened nexi before: try again."""


def seen(page: Any) -> str:
    """What the page says, one line for each line of the screen."""
    return "\n".join(" ".join(line.split()) for line in page.inner_text("main").split("\n") if line.strip())


def test_the_printed_link_signs_a_browser_in_and_leaves_no_token_in_its_address(world: World, visit: Visit) -> None:
    server = world.serve()
    token = printed_link(world).partition("?token=")[2]
    assert world.run("token").out == token
    person = visit(server)
    person.page.wait_for_selector("#question")
    assert person.page.url == f"{server.base}/"
    [cookie] = person.page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (
        f"nexi-owner-{server.base.rpartition(':')[2]}",
        True,
        "Strict",
    )
    assert token not in str(cookie)
    person.page.reload()
    person.ask(QUESTION)
    person.finished()
    person.page.reload()
    person.finished()
    person.sees("384,400 km", "#answer")
    assert (token in person.page.url, token in person.page.content(), person.trouble) == (False, False, [])


def test_another_browser_is_told_how_to_get_in_and_gets_in_with_the_token(world: World, browser: Any) -> None:
    server = world.serve()
    profile = browser.new_context(**SCREEN)
    try:
        page = profile.new_page()
        reply = page.goto(f"{server.base}/history")
        assert (reply.status, seen(page), profile.cookies()) == (401, CLOSED, [])
        assert page.request.get(f"{server.base}/page/settings").status == 401
        page.fill("input[name=token]", "a wrong one")
        page.click("button")
        page.wait_for_selector("h1:has-text('old or wrong')")
        page.fill("input[name=token]", world.run("token").out)
        page.click("button")
        page.wait_for_selector("#question", state="attached")
        assert page.url == f"{server.base}/history"
    finally:
        profile.close()


def test_a_new_token_signs_browsers_out_while_the_server_runs(world: World, visit: Visit) -> None:
    server = world.serve()
    person = visit(server)
    person.page.wait_for_selector("#question")
    old = world.run("token").out
    made = world.run("token", "--new")
    assert (made.code, made.err, len(made.out), made.out == old) == (0, "", len(old), False)
    assert person.page.reload().status == 401
    assert seen(person.page) == CLOSED
    assert person.page.goto(f"{server.base}/?token={old}").status == 401
    assert seen(person.page).startswith("This link has an old or wrong token\n")
    assert person.page.goto(f"{server.base}/?token={made.out}").status == 200
    person.page.wait_for_selector("#question")
    assert person.page.url == f"{server.base}/"
