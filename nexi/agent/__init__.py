"""The one tool-calling loop: `context`, `checking`, `fallbacks`, `loop`; each imports those before it."""

from __future__ import annotations

from nexi.agent.checking import AnswerChecker as AnswerChecker
from nexi.agent.checking import StreamedAnswerCheck as StreamedAnswerCheck
from nexi.agent.context import GRACE_S as GRACE_S
from nexi.agent.context import AgentSettings as AgentSettings
from nexi.agent.context import RunContext as RunContext
from nexi.agent.fallbacks import NO_ANSWER as NO_ANSWER
from nexi.agent.fallbacks import flatten_tool_messages as flatten_tool_messages
from nexi.agent.loop import AgentLoop as AgentLoop
from nexi.agent.loop import Inbox as Inbox
