"""The page of administrators: people, limits and tokens are changed by forms, each change is in the audit log."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from nexi.team.postgres.people import Quotas
from tests.team.world import ServedTeam, serving_team


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


async def submit(client: httpx2.AsyncClient, action: str, **fields: str) -> httpx2.Response:
    return await client.post("/admin", data={"action": action, **fields})


def notice_of(reply: httpx2.Response) -> str:
    found = re.search(r'<p role="status">(.*?)</p>', reply.text)
    return found[1] if found else ""


async def test_an_administrator_adds_a_person_who_signs_in_by_the_link(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    name = f"Grace {uuid4().hex}"  # the tests of a process share their people
    async with served.client_of(make_person("Chief", role="administrator")) as client:
        added = await submit(client, "add_user", name=name)
        assert added.status_code == 200
        path = re.search(r"/login/link/\S+", notice_of(added))
        assert path is not None
        again = await submit(client, "add_user", name=name)
    assert (again.status_code, notice_of(again)) == (400, f"There is already a person named {name}. Choose another name.")
    grace = served.people.find(name)
    assert served.people.use_link(path[0].rpartition("/")[2]) == grace
    assert [(action, subject) for _, _, action, subject, _ in served.people.read_audit(1)] == [("add_user", grace)]


async def test_limits_are_set_and_cleared(served: ServedTeam, make_person: Callable[..., str]) -> None:
    ada = make_person("Ada")
    async with served.client_of(make_person(role="administrator")) as client:
        saved = await submit(client, "set_quotas", person=ada, runs_per_day="5", cost_per_day="0.5", storage_bytes="1.5")
        assert (saved.status_code, saved.headers["location"]) == (303, "/admin")
        quotas = served.people.quotas_of(ada)
        assert quotas == Quotas(runs_per_day=5, cost_per_day=0.5, storage_bytes=1_500_000)
        shown = (await client.get("/admin")).text
        assert 'name="storage_bytes" value="1.5"' in shown
        for wrong in ({"runs_per_day": "-1"}, {"tokens_per_day": "many"}, {"running": "0"}, {"cost_per_day": "1e99"}):
            assert (await submit(client, "set_quotas", person=ada, **wrong)).status_code == 400
        assert served.people.quotas_of(ada) == quotas
        await submit(client, "set_quotas", person=ada)
        assert served.people.quotas_of(ada) == Quotas()


async def test_a_person_is_disabled_let_in_again_and_deleted_by_name(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    ada = make_person("Ada")
    async with served.client_of(make_person(role="administrator")) as client, served.client_of(ada) as hers:
        assert (await submit(client, "disable_user", person=ada)).status_code == 303
        assert (await hers.get("/account")).status_code == 401
        assert (await submit(client, "enable_user", person=ada)).status_code == 303
        assert (await hers.get("/account")).status_code == 200
        assert (await submit(client, "remove_user", person=ada, name="Bob")).status_code == 400
        assert (await hers.get("/account")).status_code == 200
        removed = await submit(client, "remove_user", person=ada, name="Ada")
        assert notice_of(removed) == "Ada was deleted with everything of theirs."
        assert (await hers.get("/account")).status_code == 401
        assert (await submit(client, "disable_user", person=ada)).status_code == 400


async def test_a_token_is_revoked_and_a_role_changed(served: ServedTeam, make_person: Callable[..., str]) -> None:
    ada = make_person("Ada")
    secret = served.people.add_token(ada, "phone")
    token = next(t.id for t in served.people.list_tokens(ada) if t.name == "phone")
    async with served.client_of(make_person(role="administrator")) as client, served.client(secret) as phone:
        assert (await phone.get("/admin")).status_code == 403
        await submit(client, "set_role", person=ada, role="administrator")
        assert (await phone.get("/admin")).status_code == 200
        await submit(client, "revoke_token", token=token)
        assert (await phone.get("/admin")).status_code == 401
        assert (await submit(client, "revoke_token", token=token)).status_code == 400


async def test_an_administrator_cannot_shut_herself_out(served: ServedTeam, make_person: Callable[..., str]) -> None:
    chief = make_person("Chief", role="administrator")
    async with served.client_of(chief) as client:
        tried = [
            await submit(client, "disable_user", person=chief),
            await submit(client, "remove_user", person=chief, name="Chief"),
            await submit(client, "set_role", person=chief, role="user"),
            await submit(client, "no_such_action"),
        ]
    assert [reply.status_code for reply in tried] == [400, 400, 400, 400]
    assert [(name, role, disabled) for person, name, role, disabled in served.people.list_all() if person == chief] == [
        ("Chief", "administrator", False)
    ]


async def test_the_forms_are_for_administrators_of_this_origin_with_a_token_that_may_change(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    chief = make_person("Chief", role="administrator")
    async with (
        served.client_of(make_person("Eve")) as eve,
        served.client_of(chief) as client,
        served.client_of(chief, scopes=("read",)) as reader,
    ):
        elsewhere = await client.post(
            "/admin", data={"action": "add_user", "name": "Mallory"}, headers={"origin": "https://evil.example"}
        )
        replies = [elsewhere, await submit(eve, "add_user", name="Mallory"), await submit(reader, "add_user", name="Mallory")]
    assert [reply.status_code for reply in replies] == [403, 403, 403]
    assert "Mallory" not in [name for _, name, _, _ in served.people.list_all()]
