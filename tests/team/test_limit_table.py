"""The limits of a team server: the handbook shows those of the code, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from nexi.team import limits

HANDBOOK = Path(__file__).resolve().parent.parent.parent / "docs" / "team.md"
ROW = re.compile(r"^\| [^|]+ \| ([\d,.]+)[^|]* \| ([A-Z_]+) \|$", re.MULTILINE)


def test_the_handbook_has_every_limit_with_its_value_in_the_order_of_the_code() -> None:
    shown = [(name, float(value.replace(",", ""))) for value, name in ROW.findall(HANDBOOK.read_text(encoding="utf-8"))]
    assert shown == [(name, float(value)) for name, value in vars(limits).items() if name.isupper()]


def test_no_other_module_of_the_team_server_has_a_limit() -> None:
    limit = re.compile(r"^(?:MAX|MIN|DEFAULT)_\w+ = \d", re.MULTILINE)
    folder = Path(limits.__file__).parent
    modules = {
        path.relative_to(folder).as_posix(): limit.findall(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")
    }
    assert {name: lines for name, lines in modules.items() if lines and name != "limits.py"} == {
        "postgres/database.py": ["MAX_ROWS = 1"]  # the largest number of rows, for a request without a limit
    }
