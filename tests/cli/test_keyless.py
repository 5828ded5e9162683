"""A new user with no key and no container: `nexi "question"` answers questions of ten kinds, over stand-ins of the services.

The services and the pages are on loopback; DuckDuckGo, whose library has no other address, is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from rig import miniweb
from rig.services import search_corpus, serve_services
from tests.cli.command import Command
from tests.keyless import PAGES, QUESTIONS


@pytest.fixture(scope="module")
def services() -> Iterator[tuple[str, dict[str, str]]]:
    """The address of the pages, and those of the services that find them."""
    corpus = miniweb.Corpus(PAGES)
    with (
        miniweb.serve(corpus) as base,
        serve_services(search_corpus(corpus, lambda url: f"{base}/{url.removeprefix('http://')}")) as urls,
    ):
        yield urlsplit(base).netloc, urls


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if number % 3 else ()) for number, kind in enumerate(QUESTIONS)]
)
def test_a_new_user_without_a_key_gets_an_answer(kind: str, nexi: Command, services: tuple[str, dict[str, str]]) -> None:
    question, expected = QUESTIONS[kind]
    web, urls = services
    nexi.home.mkdir(parents=True)
    config = nexi.home / "config.json"
    config.write_text(json.dumps({"services": ["-duckduckgo"], "service_urls": urls, "allow_private": [web]}))
    config.chmod(0o600)
    done = nexi(question, "--plain")
    assert (done.code, expected in done.out, "[1] " in done.out) == (0, True, True), f"{done.out}\n{done.err}"
