"""The server of a team: many people, each with runs, knowledge and limits of their own, over one Postgres.

This is the only way in: the rest of nexi uses the names below and imports none of the modules. A nexi for one person loads
none of them.

    limits      every limit, in one table
    postgres/   runs, page texts, history, people and schedules, each as a port; `migrations/` is the schema
    assembly    Team: what one process shares, and a `Nexi` for each person
    worker      takes runs from the queue, and goes on with those whose worker is lost
    web/        finds out who asks, signs people in, and serves their account, shares, schedules and administration
    cli/        `nexi admin` and `nexi work`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexi.team.assembly import Team as Team
    from nexi.team.assembly import open_database as open_database
    from nexi.team.cli.admin import admin_command as admin_command
    from nexi.team.cli.work import work_command as work_command
    from nexi.team.web.app import create_team_app as create_team_app
else:
    _MODULE_OF = {
        "Team": "nexi.team.assembly",
        "admin_command": "nexi.team.cli.admin",
        "create_team_app": "nexi.team.web.app",
        "open_database": "nexi.team.assembly",
        "work_command": "nexi.team.cli.work",
    }
    __all__ = sorted(_MODULE_OF)

    def __getattr__(name: str) -> Any:
        """Load a name of the list above from its module."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_MODULE_OF[name]), name)
