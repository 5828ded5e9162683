"""Signing in: by a real OpenID Connect flow with a provider on loopback, and by a link that works once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.team.world import ServedTeam, running_provider, serving_team


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with running_provider() as url:
        yield url


@pytest.fixture
async def served(postgres: Any, tmp_path: Path, provider: str) -> AsyncIterator[ServedTeam]:
    settings = {"oidc_issuer": provider, "oidc_client": "nexi", "oidc_secret": "secret"}
    async with serving_team(postgres.url, tmp_path, **settings) as team:
        yield team


async def go_to_provider(browser: httpx2.AsyncClient, subject: str) -> str:
    """Begin a login and sign in at the provider; the address it sends the browser back to."""
    begun = await browser.get("/login")
    assert begun.status_code in (302, 303), begun.text
    place = begun.headers["location"]
    asked = parse_qs(urlsplit(place).query)
    assert (asked["code_challenge_method"], len(asked["state"][0]) > 16, len(asked["nonce"][0]) > 16) == (["S256"], True, True)
    async with httpx2.AsyncClient() as there:
        signed_in = await there.post(place, data={"sub": subject})
    assert signed_in.status_code in (302, 303), signed_in.text
    return str(signed_in.headers["location"])


async def test_a_person_signs_in_and_out(served: ServedTeam) -> None:
    async with served.client() as browser:
        assert (await browser.get("/")).headers["location"] == "/login"
        back = await go_to_provider(browser, "ada")
        done = await browser.get(back, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})
        assert (done.status_code, done.headers["location"]) == (303, "/")
        (cookie,) = [line for line in done.headers.get_list("set-cookie") if line.startswith("__Host-nexi=")]
        kept = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "secure", "samesite=lax", "path=/"} <= kept
        assert [(await browser.get(path)).status_code for path in ("/v1/runs", "/")] == [200, 200]
        assert (await browser.post("/logout")).status_code == 303
        assert (await browser.get("/v1/runs")).status_code == 401
    assert "sign_in" in [row[2] for row in served.people.read_audit(5)]


@pytest.mark.parametrize(("seconds", "status"), [(-240, 303), (240, 303), (-1200, 400)])
async def test_the_clock_of_the_provider_may_differ_by_minutes(
    served: ServedTeam, monkeypatch: pytest.MonkeyPatch, seconds: int, status: int
) -> None:
    from authlib.oauth2.claims import JWTClaims, JWTClaimsRegistry

    def build_registry(now: int | None, leeway: int, **options: Any) -> JWTClaimsRegistry:
        return JWTClaimsRegistry(int(time.time()) + seconds, leeway, **options)

    monkeypatch.setattr(JWTClaims, "registry_cls", staticmethod(build_registry))
    async with served.client() as browser:
        back = await go_to_provider(browser, "ada")
        assert (await browser.get(back)).status_code == status


async def test_a_callback_works_once(served: ServedTeam) -> None:
    async with served.client() as browser:
        back = await go_to_provider(browser, "ada")
        statuses = [(await browser.get(back)).status_code for _ in range(2)]
    assert statuses == [303, 400]


async def test_a_callback_of_another_browser_is_refused(served: ServedTeam) -> None:
    async with served.client() as attacker, served.client() as victim:
        back = await go_to_provider(attacker, "eve")
        refused = await victim.get(back)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "login_refused")
        own = await go_to_provider(victim, "ada")
        swapped = await victim.get(back)  # with a login of her own under way, the state still is another's
        assert (swapped.status_code, (await victim.get(own)).status_code) == (400, 400)
        assert (await victim.get("/v1/runs")).status_code == 401


@pytest.mark.parametrize("query", ["", "?code=x", "?state=forged&code=x", "?error=access_denied&state=forged"])
async def test_a_forged_callback_is_refused(served: ServedTeam, query: str) -> None:
    async with served.client() as browser:
        await go_to_provider(browser, "ada")
        refused = await browser.get(f"/login/callback{query}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "login_refused")


async def test_a_disabled_person_is_out_at_once(served: ServedTeam) -> None:
    async with served.client() as browser:
        await browser.get(await go_to_provider(browser, "mallory"))
        person = served.people.find("mallory")
        served.people.change(person, is_disabled=True)
        assert (await browser.get("/v1/runs")).status_code == 401
        await browser.get(await go_to_provider(browser, "mallory"))
        assert (await browser.get("/v1/runs")).status_code == 401
    served.people.remove(person)


async def test_a_link_signs_in_once_and_only_by_its_button(served: ServedTeam, make_person: Callable[..., str]) -> None:
    path = f"/login/link/{served.people.add_link(make_person())}"
    async with served.client() as browser:
        assert [(await browser.get(path)).status_code for _ in range(2)] == [200, 200]
        foreign = await browser.post(path, headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert (await browser.post(path)).status_code == 303
        assert (await browser.get("/v1/runs")).status_code == 200
        assert (await browser.post(path)).status_code == 400


async def refusal_of(postgres: Any, home: Path, issuer: str, **headers: str) -> httpx2.Response:
    settings = {"oidc_issuer": issuer, "oidc_client": "nexi"}
    async with serving_team(postgres.url, home, **settings) as served, served.client() as browser:
        return await browser.get("/login", headers=headers)


async def test_a_provider_that_is_not_there_is_said_so(postgres: Any, tmp_path: Path) -> None:
    refused = await refusal_of(postgres, tmp_path, "http://127.0.0.1:9")
    assert (refused.status_code, refused.json()["error"]) == (
        502,
        {
            "code": "provider_failed",
            "message": "the identity provider could not be asked: nothing answers at http://127.0.0.1:9",
            "fix": "try again soon; if it stays, an administrator must correct oidc_issuer",
        },
    )


async def test_an_address_that_is_no_provider_is_said_so(postgres: Any, tmp_path: Path, provider: str) -> None:
    refused = await refusal_of(postgres, tmp_path, f"{provider}/elsewhere")
    assert refused.json()["error"] == {
        "code": "provider_failed",
        "message": f"the identity provider could not be asked: {provider}/elsewhere has no OpenID configuration",
        "fix": "an administrator must correct oidc_issuer",
    }


async def test_a_browser_is_shown_why_it_is_not_signed_in(postgres: Any, tmp_path: Path) -> None:
    refused = await refusal_of(postgres, tmp_path, "http://127.0.0.1:9/a&b", accept="text/html")
    assert (refused.status_code, refused.headers["content-type"]) == (502, "text/html; charset=utf-8")
    assert "<p>The identity provider could not be asked: nothing answers at http://127.0.0.1:9/a&amp;b.</p>" in refused.text
    assert "<p>What to do: Try again soon; if it stays, an administrator must correct oidc_issuer.</p>" in refused.text


async def test_a_wrong_secret_is_the_administrators_to_correct(postgres: Any, tmp_path: Path) -> None:
    with running_provider("--require-registration", "true") as provider:
        about = {"redirect_uris": ["https://127.0.0.1/login/callback"], "token_endpoint_auth_method": "client_secret_basic"}
        registered = httpx2.post(f"{provider}/oauth2/clients", json=about).json()
        settings = {"oidc_issuer": provider, "oidc_client": registered["client_id"], "oidc_secret": "another"}
        async with serving_team(postgres.url, tmp_path, **settings) as served, served.client() as browser:
            refused = await browser.get(await go_to_provider(browser, "ada"))
    assert (refused.status_code, refused.json()["error"]) == (
        502,
        {
            "code": "provider_failed",
            "message": "the identity provider refused this server: it does not accept its client id and secret",
            "fix": "an administrator must correct oidc_client and oidc_secret",
        },
    )


async def test_without_a_provider_there_is_nothing_to_sign_in_with(postgres: Any, tmp_path: Path) -> None:
    async with serving_team(postgres.url, tmp_path) as served, served.client() as browser:
        assert ((await browser.get("/login")).status_code, (await browser.get("/")).status_code) == (404, 200)
