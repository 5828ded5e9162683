"""What processes that tests start have in common: they import this checkout, and choose sentences by their words.

Loading the reading model takes a good part of a short command; `tests/conftest.py` leaves it out of the tests' own process too.
"""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHILD_PATH = os.pathsep.join((str(HERE / "without_reader"), str(HERE.parent)))
