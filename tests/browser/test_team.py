"""A team server in a browser: signing in, sharing, quotas, one's account with schedules and tokens, the list of all."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from nexi.team.postgres.people import People, Quotas
from tests.browser.scene import Watched
from tests.browser.test_looks import PHONE, SCAN, STICKING_OUT, TAGS, axe
from tests.team.world import QUESTION, ServedTeam, running_provider, serving_team

__all__ = ["axe"]  # the fixture of the scanner

Look = Callable[..., Watched]
FAR = "384,400 km"
FILTERED = """(words) => {
  const rows = [...document.querySelectorAll("#knowledge-list .address")].map((row) => row.textContent);
  return document.getElementById("knowledge-message").textContent || (rows.length && rows.every((row) => row.includes(words)));
}"""


@dataclass
class TeamSite:
    """A team server at an address, and its people."""

    base: str
    people: People


@contextmanager
def hosting(url: str, home: Path, **settings: Any) -> Iterator[TeamSite]:
    """A team server with a worker, in a thread with a loop of its own: the browser has that of the tests."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready, ended = threading.Event(), threading.Event()
    opened: list[ServedTeam] = []

    async def serve() -> None:
        async with serving_team(url, home, **settings) as team:
            server = uvicorn.Server(uvicorn.Config(team.app, lifespan="off", log_config=None, timeout_graceful_shutdown=1))
            serving = asyncio.create_task(server.serve([listener]))
            opened.append(team)
            ready.set()
            await asyncio.to_thread(ended.wait)
            server.should_exit = True
            await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(300)
        yield TeamSite(f"http://127.0.0.1:{listener.getsockname()[1]}", opened[0].people)
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module")
def site(browser: Any, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamSite]:
    with running_provider() as provider:
        settings = {"oidc_issuer": provider, "oidc_client": "nexi", "oidc_secret": "secret"}
        with hosting(postgres.url, tmp_path_factory.mktemp("team"), **settings) as there:
            yield there


def sign_in(look: Look, site: TeamSite, name: str, **options: Any) -> Watched:
    """Somebody who opens the page, is led to the provider, and comes back."""
    person = look(site.base, **options)
    person.open()
    assert not person.page.url.startswith(site.base)
    person.page.fill("input[name=sub]", name)
    person.page.press("input[name=sub]", "Enter")
    person.page.wait_for_url(f"{site.base}/")
    person.page.wait_for_selector("#question")
    person.outside.clear()  # the provider, which is elsewhere by its nature
    person.errors.clear()
    return person


def ask_run(person: Watched) -> str:
    person.ask(QUESTION)
    person.sees(FAR)
    person.finished()
    return str(person.page.url.rpartition("/")[2])


def test_a_person_signs_in_asks_and_signs_out(look: Look, site: TeamSite) -> None:
    ada = sign_in(look, site, "ada")
    run_id = ask_run(ada)
    assert (len(run_id), ada.trouble) == (32, [])
    signed_out = ada.page.evaluate("fetch('/logout', {method: 'POST', redirect: 'manual'}).then((reply) => reply.type)")
    assert signed_out == "opaqueredirect"
    ada.open(f"/runs/{run_id}")
    assert not ada.page.url.startswith(site.base)  # back at the provider


def test_a_shared_run_is_read_by_the_team_until_it_is_taken_back(look: Look, site: TeamSite) -> None:
    ada, bob = sign_in(look, site, "ada"), sign_in(look, site, "bob")
    run_id = ask_run(ada)
    bob.open(f"/runs/{run_id}")
    bob.sees("There is no such run", "body")
    ada.page.click("#publish")
    ada.page.wait_for_selector("#publish[data-shared='1']")
    bob.open(f"/runs/{run_id}")
    bob.sees(FAR)
    bob.finished()
    assert bob.page.is_hidden("#publish")  # it is not his to share
    ada.open(f"/runs/{run_id}")
    ada.page.wait_for_selector("#publish[data-shared='1']")
    ada.page.click("#publish")
    ada.page.wait_for_selector("#publish[data-shared='']")
    bob.open(f"/runs/{run_id}")
    bob.sees("There is no such run", "body")
    assert FAR not in bob.page.inner_text("body")


def drop_file(person: Watched, name: str, text: str) -> None:
    person.page.set_input_files("#picker", [{"name": name, "mimeType": "text/plain", "buffer": text.encode()}])
    person.page.wait_for_selector("#files li.done, #files li.failed")


def search_knowledge(person: Watched, words: str) -> list[str]:
    """What the panel of the knowledge base lists for some words."""
    person.open()
    person.page.click("#show-knowledge")
    person.page.wait_for_selector("#knowledge-sharing:not([hidden])")
    person.page.fill("#knowledge-filter", words)
    person.page.wait_for_function(FILTERED, arg=words)
    return person.page.eval_on_selector_all("#knowledge-list .address", "(rows) => rows.map((row) => row.textContent)")


def test_a_knowledge_base_is_searched_by_those_it_is_shared_with_until_it_is_taken_back(look: Look, site: TeamSite) -> None:
    ada, bob = sign_in(look, site, "ada"), sign_in(look, site, "bob")
    drop_file(ada, "cellar.txt", "The xylophone is in the cellar of the house in Bergen. " * 5)
    assert len(search_knowledge(ada, "cellar")) == 1
    assert search_knowledge(bob, "cellar") == []
    ada.page.click("#knowledge-sharing summary")
    ada.sees("Not shared.", "#knowledge-shared")
    ada.page.fill("#knowledge-people", "bob, nobody-at-all")
    ada.page.click("#knowledge-share button")
    ada.sees("here is no one called", "#knowledge-shared")
    ada.page.fill("#knowledge-people", "bob")
    ada.page.click("#knowledge-share button")
    ada.sees("Shared with: bob.", "#knowledge-shared")
    assert search_knowledge(bob, "cellar") == []
    bob.sees("ada shares a knowledge base with you; it enters no answer until you accept it.", "#knowledge-offers")
    bob.page.click("#knowledge-offers >> text='Accept'")
    bob.sees("You search the knowledge base of ada.", "#knowledge-offers")
    assert len(search_knowledge(bob, "cellar")) == 1
    bob.sees("shared by ada", "#knowledge-list")
    bob.page.click("#knowledge-offers >> text='Mute'")
    bob.sees("The knowledge base of ada is muted.", "#knowledge-offers")
    assert search_knowledge(bob, "cellar") == []
    bob.page.click("#knowledge-offers >> text='Accept'")
    bob.sees("You search the knowledge base of ada.", "#knowledge-offers")
    ada.page.fill("#knowledge-people", "")
    ada.page.click("#knowledge-share button")
    ada.sees("Not shared.", "#knowledge-shared")
    assert search_knowledge(bob, "cellar") == []


def test_an_upload_beyond_the_storage_is_said_on_the_page(look: Look, site: TeamSite) -> None:
    dora = sign_in(look, site, "dora")
    site.people.set_quotas(site.people.find("dora"), Quotas(storage_bytes=5_000))
    drop_file(dora, "large.txt", "The xylophone is in the cellar of the house in Bergen. " * 500)
    dora.sees("ou have reached your quota of storage", "#files")
    dora.sees("elete runs or stored sources, or ask an administrator for more", "#files")


def test_a_quota_that_is_reached_is_said_on_the_page(look: Look, site: TeamSite) -> None:
    carol = sign_in(look, site, "carol")
    ask_run(carol)
    site.people.set_quotas(site.people.find("carol"), Quotas(runs_per_day=1))
    carol.open()
    carol.page.fill("#question", QUESTION)
    carol.page.press("#question", "Enter")
    carol.sees("You have reached your quota of runs a day: 1 of 1 are used", "#notes")
    carol.sees("Ask again tomorrow, or ask an administrator for more.", "#notes")


def open_account(person: Watched) -> None:
    person.open()
    person.page.click("#show-account")
    person.sees("Signed in as", "#account-who")


def test_a_person_adds_and_removes_a_schedule_with_the_keyboard(look: Look, site: TeamSite) -> None:
    erin = sign_in(look, site, "erin")
    open_account(erin)
    assert erin.page.evaluate("location.pathname") == "/profile"
    erin.sees("You have no schedules.", "#schedule-list")
    erin.page.focus("#schedule-question")
    erin.page.keyboard.type("What is new in Postgres?")
    erin.page.select_option("#schedule-every", "week")
    erin.page.fill("#schedule-first", (datetime.now() + timedelta(days=30)).strftime("%Y-%m-%dT07:00"))
    erin.page.focus("#schedule-question")
    erin.page.keyboard.press("Enter")
    erin.sees("Schedule added.", "#account-message")
    erin.sees("What is new in Postgres?", "#schedule-list")
    erin.sees("Every week", "#schedule-list")
    erin.sees("not asked yet", "#schedule-list")
    erin.page.focus("#schedule-list button")
    assert erin.page.get_attribute("#schedule-list button", "aria-label") == "Remove: What is new in Postgres?"
    erin.page.keyboard.press("Enter")
    erin.page.wait_for_selector("#confirm[open]")
    erin.page.keyboard.press("Tab")
    erin.page.keyboard.press("Enter")
    erin.sees("Schedule removed.", "#account-message")
    open_account(erin)
    erin.sees("You have no schedules.", "#schedule-list")
    assert erin.trouble == []


def test_a_schedule_that_was_asked_leads_to_its_last_answer(look: Look, site: TeamSite) -> None:
    finn = sign_in(look, site, "finn")
    open_account(finn)
    finn.page.fill("#schedule-question", QUESTION)
    finn.page.click("#schedule-new button")
    finn.sees("Schedule added.", "#account-message")
    for _ in range(100):  # until a worker has asked it
        open_account(finn)
        finn.page.wait_for_selector("#schedule-list li")
        if finn.page.query_selector("#schedule-list a"):
            break
    finn.page.click("#schedule-list a")
    finn.sees(FAR)
    assert finn.trouble == []


def test_a_token_is_shown_once_works_and_is_revoked(look: Look, site: TeamSite) -> None:
    gina = sign_in(look, site, "gina")
    open_account(gina)
    gina.page.fill("#token-name", "laptop")
    gina.page.fill("#token-days", "30")
    gina.page.check("#token-read-only")
    gina.page.click("#token-new button")
    gina.page.wait_for_selector("#token-secret")
    token = gina.page.input_value("#token-secret")
    assert gina.page.evaluate("document.activeElement.id") == "token-secret"
    principal = site.people.find_by_token(token)
    assert principal is not None
    assert (principal.name, principal.scopes) == ("gina", ("read",))
    gina.sees("read-only", "#token-list")
    open_account(gina)
    assert gina.page.query_selector("#token-secret") is None
    assert token not in gina.page.content()
    gina.sees("laptop", "#token-list")
    gina.page.click("#token-list button")
    gina.page.click("#confirm-yes")
    gina.sees("Token revoked.", "#account-message")
    assert site.people.find_by_token(token) is None
    assert gina.trouble == []


def test_a_person_is_shown_that_an_administrator_made_a_link_to_sign_in_as_her(look: Look, site: TeamSite) -> None:
    hana = sign_in(look, site, "hana")
    person = site.people.find("hana")
    site.people.record(person, "link_made_by", "Chief")
    hana.open()
    hana.sees("Chief created a link that signs in as you.", "#access-notice")
    hana.page.click("#access-notice a")
    hana.sees("Chief created a link that signs in as you.", "#access-list")
    hana.open()
    hana.page.wait_for_selector("#show-account:not([hidden])")
    hana.page.wait_for_load_state("networkidle")
    assert hana.page.query_selector("#access-notice") is None
    assert hana.trouble == []


@pytest.mark.parametrize(("language", "head"), [("de", "Zeitpläne"), ("ar", "أسئلة مجدولة")])
def test_the_account_fits_a_phone_in_other_languages_and_the_scanner_finds_nothing(
    look: Look, site: TeamSite, axe: str, language: str, head: str
) -> None:
    person = sign_in(look, site, f"reader-{language}", viewport=PHONE, is_mobile=True, has_touch=True, locale=language)
    site.people.add_token(site.people.find(f"reader-{language}"), "a program with a rather long name of its own, on a phone")
    site.people.record(site.people.find(f"reader-{language}"), "link_made_by", "Chief")
    person.open("/profile")
    person.sees(head, "#account")
    person.sees("Chief", "#access-list")
    person.page.wait_for_selector("#token-list button")
    person.page.evaluate(axe)
    assert [*person.page.evaluate(SCAN, TAGS), *person.page.evaluate(STICKING_OUT, PHONE["width"])] == []
    assert person.trouble == []


def test_administrators_see_everybody_and_nobody_else_does(look: Look, site: TeamSite) -> None:
    chief, user = sign_in(look, site, "chief"), sign_in(look, site, "user")
    site.people.change(site.people.find("chief"), role="administrator")
    chief.open("/admin")
    tables = chief.page.eval_on_selector_all("h2", "(heads) => heads.map((head) => head.textContent)")
    assert tables == ["People", "Limits (empty: none)", "Tokens", "Runs"]
    assert "chief" in chief.page.inner_text("table")
    user.open("/admin")
    assert "this is for administrators" in user.page.inner_text("body")


def test_an_administrator_sets_a_limit_and_adds_a_person_in_the_browser(look: Look, site: TeamSite) -> None:
    chief = sign_in(look, site, "boss")
    site.people.change(site.people.find("boss"), role="administrator")
    chief.open("/admin")
    limits = chief.page.locator("tr", has=chief.page.locator("td:text-is('boss')")).locator(
        "form:has(input[name=runs_per_day])"
    )
    limits.locator("input[name=runs_per_day]").fill("40")
    limits.locator("button").click()
    chief.page.wait_for_selector("input[name=runs_per_day][value='40']")
    assert site.people.quotas_of(site.people.find("boss")) == Quotas(runs_per_day=40)
    chief.page.fill("form:has(input[name=administrator]) input[name=name]", "Grace")
    chief.page.click("form:has(input[name=administrator]) button")
    link = chief.page.inner_text("[role=status]").rpartition(" ")[2]
    grace = look(site.base)
    grace.open(link)
    grace.page.click("button")
    grace.page.wait_for_selector("#question")
