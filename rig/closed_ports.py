"""`python -m rig.closed_ports ...`: the nexi command where no local model server listens, whatever else runs on the machine.

The usual ports of model servers are refused at the socket, so that neither a test nor the command that it starts finds an
Ollama of the developer.
"""

from __future__ import annotations

import errno
import sys
from typing import Any

from nexi.llm.local import PORTS


def refuse_model_servers(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: a connection to a usual port of a model server is refused."""
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][1] in PORTS.values():
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused by the rig")


if __name__ == "__main__":
    from nexi.__main__ import main

    sys.addaudithook(refuse_model_servers)
    main()
