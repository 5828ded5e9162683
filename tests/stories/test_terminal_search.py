"""Stories of the terminal whose search service or network is broken: one cause, once, and the fix that doctor gives."""

from __future__ import annotations

import subprocess

import pytest

from tests.stories.world import QUESTION, Screen, World, free_port

IN_VAIN = 'Could not search "How far is the Moon from Earth on average?"\nCould not search "far Moon Earth average"\n'
CAUSES = {
    "json off": (
        "SearXNG refuses to answer in JSON: HTTP 403: the instance has its JSON format switched off, which is its default",
        "add `json` to search.formats in its settings.yml and restart it",
    ),
    "html": (
        "there is no SearXNG at this URL: the answer is a web page and no JSON",
        "set SEARXNG_URL to the start page of the instance, like http://127.0.0.1:PORT",
    ),
    "limiter": (
        "SearXNG limits how often it may be asked: HTTP 429: its limiter counted too many requests, or does not take us for a "
        "browser",
        "set server.limiter to false in its settings.yml, or wait",
    ),
    "fault": ("SearXNG has a fault: HTTP 500", "look into its log"),
    "no engines": (
        "no search engine behind SearXNG answered: brave: timeout, google: access denied",
        "wait for the suspension to end, enable other engines in its settings.yml, or check its network",
    ),
}


def failure(cause: str, fix: str, *, before: str = IN_VAIN, what: str = "there is no answer: ") -> Screen:
    return Screen(5, "", f"{before}Error: {what}{cause}\n  Fix: {fix}")


@pytest.mark.parametrize("trouble", CAUSES)
def test_a_broken_search_service_is_told_with_its_own_fix(world: World, trouble: str) -> None:
    world.web.trouble = trouble
    assert world.run(QUESTION) == failure(*CAUSES[trouble])
    assert world.history() == []


def test_a_model_is_not_blamed_for_a_broken_search_service(world: World) -> None:
    world.use_model()
    world.web.trouble = "json off"
    assert world.run(QUESTION) == failure(*CAUSES["json off"])
    assert world.run_list() == f"ID  TIME  failed      search    {QUESTION}"


@pytest.mark.parametrize("trouble", ["json off", "no engines"])
def test_doctor_gives_the_same_cause_and_fix(world: World, trouble: str) -> None:
    world.web.trouble = trouble
    cause, fix = CAUSES[trouble]
    message, _, reason = cause.partition(": ")
    report = world.run("doctor")
    at = report.out.index("problem  search searxng")
    told = [line.strip() for line in report.out[at:].splitlines()[:3]]
    assert told == [f"problem  search searxng  {message}", f"cause: {reason}", f"fix: {fix}"]
    assert report.code == 1


def test_a_search_service_that_is_down_names_its_address(world: World) -> None:
    world.env["SEARXNG_URL"] = f"http://127.0.0.1:{free_port()}"
    assert world.run(QUESTION) == failure(
        "SearXNG refused the connection: nothing listens at http://127.0.0.1:PORT/search",
        "start the service, or correct its URL",
    )


def test_a_search_without_results_is_no_failure_of_the_service(world: World) -> None:
    world.web.trouble = "nothing"
    searched = 'Searched "{}": 0 results from searxng\n'
    assert world.run(QUESTION) == failure(
        "SearXNG found nothing for this question",
        "ask in other words, or add a search service: nexi config setup",
        before=searched.format(QUESTION) + searched.format("far Moon Earth average"),
    )


def test_a_host_without_an_address_is_named(world: World) -> None:
    world.env["SEARXNG_URL"] = "http://searx.invalid:8080"
    assert world.run(QUESTION) == failure(
        "SearXNG cannot be reached: the name of its host cannot be resolved",
        "check the network, and the host in http://searx.invalid:8080/search",
    )


def test_no_network_at_all_is_one_sentence(world: World) -> None:
    apart = ("unshare", "--map-root-user", "--net")
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    del world.env["SEARXNG_URL"]
    assert world.run(QUESTION, prefix=apart) == failure(
        "none of 6 search services could be reached, DuckDuckGo and Wikipedia among them",
        "check the connection, or answer from the knowledge base with --local; nexi doctor tests every part",
        what="No internet connection: ",
    )


@pytest.mark.parametrize("has_model", [False, True])
def test_pages_on_a_private_address_name_the_command_that_allows_them(world: World, has_model: bool) -> None:
    if has_model:
        world.use_model()
    del world.env["NEXI_ALLOW_PRIVATE"]
    assert world.run(QUESTION) == failure(
        f"127.0.0.1 is not fetched: 127.0.0.1 is loopback ({2 if has_model else 3} pages)",
        "if its pages may be read: nexi config add allow_private WEB",
        before=f'Searched "{QUESTION}": 3 results from searxng\n',
    )
    assert world.run("config", "set", "allow_private", world.web.address).code == 0
    assert world.run(QUESTION).code == 0
    assert "private addresses are refused, except WEB" in world.run("doctor").out


def test_research_tells_the_cause_once_for_all_researchers(world: World) -> None:
    world.use_model()
    world.web.trouble = "json off"
    cause, fix = CAUSES["json off"]
    done = world.run("research", "--yes", "What do Moon Facts and Tide Tables say of the Moon and of the tides?")
    assert (done.code, done.out) == (5, "")
    assert done.err.endswith(f"\nError: there is no report: {cause}\n  Fix: {fix}")
    assert done.err.count("refuses to answer") == 1
    assert done.err.count("found nothing") == done.err.count("started:") > 1
