"""The one tool-calling loop.

`context` is what all steps of a run share; `window` keeps the conversation inside the model's context window; `checking`
checks an answer before it is shown; `fallbacks` answer where the model does not; `turn` is one request with the calls it
starts; `loop` joins them. Each imports only those before it.
"""

from __future__ import annotations

from nexi.agent.checking import AnswerChecker, StreamedAnswerCheck
from nexi.agent.context import GRACE_S, AgentSettings, RunContext
from nexi.agent.fallbacks import NO_ANSWER, flatten_tool_messages
from nexi.agent.loop import AgentLoop, Inbox

__all__ = [
    "GRACE_S",
    "NO_ANSWER",
    "AgentLoop",
    "AgentSettings",
    "AnswerChecker",
    "Inbox",
    "RunContext",
    "StreamedAnswerCheck",
    "flatten_tool_messages",
]
