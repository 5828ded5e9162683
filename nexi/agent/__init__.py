"""The one tool-calling loop.

`loop` asks, runs tools and checks limits; `turn` is one request with the calls it starts; `checking` is how an answer is
checked before it is shown; `endings` are the ways a run ends before the model has answered.
"""

from __future__ import annotations

from nexi.agent.checking import Draft
from nexi.agent.endings import flattened
from nexi.agent.loop import GRACE_S, Loop, LoopSettings

__all__ = ["GRACE_S", "Draft", "Loop", "LoopSettings", "flattened"]
