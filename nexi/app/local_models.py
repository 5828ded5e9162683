"""Model servers on this machine and the clock of a server, for doors that look at a setup. No model is called."""

from __future__ import annotations

from nexi.llm.hour import server_time
from nexi.llm.local import PORTS, LocalServer, describe_server, find_servers

__all__ = ["PORTS", "LocalServer", "describe_server", "find_servers", "server_time"]
