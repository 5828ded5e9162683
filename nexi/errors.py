"""The one error tree.

    NexiError
    ├── ConfigError        a setting is missing or wrong                      exit 2
    ├── QuestionError      the question itself cannot be used                 exit 2
    ├── LLMError           the model's endpoint failed
    │   └── ContextOverflowError   the request was larger than its window
    ├── BackendError       a search backend failed
    ├── FetchError         a page could not be read (`reason` says which way)
    │   └── PageLimitError a limit was reached before it was asked for
    ├── StoreError         what nexi keeps could not be read or written
    │   └── RunTakenError  another writer has taken over the run
    ├── ResearchError      a research run cannot go on
    ├── NoEvidenceError    nothing was read, so nothing can be answered        exit 5
    ├── VerificationError  no sentence is supported by what was read           exit 5
    ├── StoppedError       a person stopped the run before it had an answer    exit 130
    └── InternalError      a fault of ours, with the log's name

Adapters translate at their edge, engines catch NexiError only, doors turn it into message and exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nexi.notices import join_cause

if TYPE_CHECKING:
    from nexi.types import Usage

Actor = Literal["user", "operator", "model"]
FetchReason = Literal["content_type", "too_large", "timeout", "blocked", "robots", "error"]


class NexiError(Exception):
    """What happened (`message`), why (`cause`), what to do (`fix`), and who must act (`actor`)."""

    code: str = "error"
    exit_code: ClassVar[int] = 1
    actor: Actor = "user"

    def __init__(self, message: str, *, cause: str = "", fix: str = "", code: str = "", actor: Actor | None = None) -> None:
        super().__init__(message)
        self.message, self.cause, self.fix = message, cause, fix
        self.code, self.actor = code or self.code, actor or self.actor

    def __str__(self) -> str:
        return join_cause(self.message, self.cause)


class ConfigError(NexiError):
    code = "config"
    exit_code = 2


class QuestionError(NexiError):
    code = "question"
    exit_code = 2


class _ServerError(NexiError):
    """`status` is the HTTP status where there was one; `retryable` says whether the same request may succeed soon."""

    def __init__(
        self,
        message: str,
        *,
        cause: str = "",
        fix: str = "",
        code: str = "",
        actor: Actor | None = None,
        status: int = 0,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, cause=cause, fix=fix, code=code, actor=actor)
        self.status, self.retryable = status, retryable
        self.retry_after = retry_after  # the server's own wish in seconds


class LLMError(_ServerError):
    code = "llm"
    partial: str = ""  # the text that had come when the reply broke off
    usage: Usage | None = None  # what the failed request cost, where that is known


class ContextOverflowError(LLMError):
    """`window` is the size in tokens that the server named, if it named one."""

    code = "context_overflow"
    window: int | None = None


class BackendError(_ServerError):
    code = "backend"
    actor: Actor = "operator"


class FetchError(_ServerError):
    code = "fetch"
    actor: Actor = "model"

    def __init__(
        self,
        message: str,
        *,
        reason: FetchReason = "error",
        cause: str = "",
        fix: str = "",
        status: int = 0,
        retryable: bool = False,
        retry_after: float | None = None,
        content_type: str = "",
    ) -> None:
        may_succeed = retryable or status >= 500 or retry_after is not None
        super().__init__(
            message, cause=cause, fix=fix, code=reason, status=status, retryable=may_succeed, retry_after=retry_after
        )
        self.reason: FetchReason = reason
        self.content_type = content_type


class PageLimitError(FetchError):
    """A page that was not asked for, because a limit of the work was reached."""


class StoreError(NexiError):
    code = "store"


class RunTakenError(StoreError):
    """A writer that lost its run to another one: whatever it still does may not be kept."""

    code = "run_taken"


class ResearchError(NexiError):
    code = "research"


class NoEvidenceError(NexiError):
    code = "no_evidence"
    exit_code = 5


class VerificationError(NexiError):
    code = "not_verified"
    exit_code = 5


class StoppedError(NexiError):
    """No failure: somebody asked the run to stop before there was anything to answer from."""

    code = "cancelled"
    exit_code = 130


class InternalError(NexiError):
    code = "internal"
