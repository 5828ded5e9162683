"""The forms of all services by name."""

from __future__ import annotations

from collections.abc import Mapping

from nexi.backends.services import papers, programs, reference, web
from nexi.backends.services.form import ServiceForm

FORMS: Mapping[str, ServiceForm] = {**papers.FORMS, **programs.FORMS, **web.FORMS, **reference.FORMS}
