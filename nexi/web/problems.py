"""Problems: what goes wrong with a request, as a status, a code and words; each contract gives them its own shape.

Modules raise `Refused` or let a NexiError through; `guard` and the app make responses of both. What runs do is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from nexi import errors
from nexi.notices import add_notices

STATUSES: Mapping[str, int] = {
    **dict.fromkeys(("bad_space", "bad_plan"), 400),
    **dict.fromkeys(("not_yours", "model_refused"), 403),
    **dict.fromkeys(("no_such_run", "bad_run_id", "not_found", "no_such_space"), 404),
    **dict.fromkeys(("space_exists", "run_locked", "complete", "cancelled", "no_plan", "not_ended", "ambiguous"), 409),
    **dict.fromkeys(("quota_reached", "budget_spent"), 429),
    **dict.fromkeys(("database", "busy"), 503),
}
STATUSES_OF_KINDS = (
    (errors.QuestionError, 400),
    ((errors.NoEvidenceError, errors.VerificationError), 422),  # the request was sound; asking again would change nothing
    (errors.ConfigError, 503),
    ((errors.LLMError, errors.BackendError), 502),
)
RETRY_S = 5


class Problem(Struct, frozen=True):
    """One refusal or failure. `retry_after` in seconds, 0 where asking again would not help."""

    status: int
    code: str
    message: str
    fix: str = ""
    retry_after: int = 0
    parameter: str = ""
    allow: str = ""

    @property
    def advice(self) -> str:
        """The message with what to do, for contracts whose errors are one text."""
        return f"{self.message}. {self.fix}" if self.fix else self.message


Shape: TypeAlias = Callable[[Problem], Any]


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault
    """Ends a request with this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def build_refusal(status: int, code: str, message: str, *, fix: str = "", retry_after: int = 0, parameter: str = "") -> Refused:
    return Refused(Problem(status, code, message, fix, retry_after, parameter))


def bad_request(message: str, *, fix: str = "", parameter: str = "") -> Refused:
    return build_refusal(400, "bad_request", message, fix=fix, parameter=parameter)


def problem_of(error: errors.NexiError) -> Problem:
    """An error of ours as a status. The caller's own doing is 4xx; what the operator or a provider must fix is 5xx."""
    of_kind = next((number for kinds, number in STATUSES_OF_KINDS if isinstance(error, kinds)), 500)
    status = STATUSES.get(error.code) or of_kind
    wait = getattr(error, "retry_after", None) if status in (429, 502, 503) else None
    if error.code in ("database", "busy"):
        wait = RETRY_S
    # the log of a run tells the cause of our own faults
    message = error.message if isinstance(error, errors.InternalError) else str(error)
    return Problem(status, error.code, message, error.fix, round(wait) if wait else 0)


def own_shape(problem: Problem) -> dict[str, Any]:
    """The shape of nexi's own paths."""
    fields = {"code": problem.code, "message": problem.message, "fix": problem.fix, "parameter": problem.parameter}
    return add_notices({"error": {name: value for name, value in fields.items() if value}})
