"""Every file that says when it was last changed or written has that day, and one that says nothing has none."""

from __future__ import annotations

import pytest

from evals.dates import list_files
from nexi.formats import to_text


@pytest.mark.parametrize(("name", "data", "day"), [pytest.param(*file, id=f"{file[0]} {file[2]}") for file in list_files()])
def test_a_file_has_the_day_that_it_says(name: str, data: bytes, day: str) -> None:
    assert to_text(data, name=name).published[:10] == day
