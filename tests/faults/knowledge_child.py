"""A process that stores pages until it is killed: `python -m tests.faults.knowledge_child PATH NAME [COUNT]`.

It prints the number of each page once the store has acknowledged it.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from pathlib import Path

from nexi.stores.sqlite import SqliteStore
from nexi.types import Chunk, IndexedPage, StoredSource

CHUNKS = 12


def page(name: str, number: int, version: int = 0) -> IndexedPage:
    texts = [f"{name} page{number} part{i} version{version} " + "filler words to write " * 20 for i in range(CHUNKS)]
    vectors = tuple(array("f", [float(number + 1), float(i + 1), 1.0, float(version)]) for i in range(CHUNKS))
    source = StoredSource(f"https://{name}.example/{number}", digest=f"{name}-{number}-{version}")
    return IndexedPage(source, tuple(Chunk(text) for text in texts), vectors)


async def main(path: Path, name: str, count: int) -> None:
    store = SqliteStore(path)
    for turn in range(count):
        await store.put([page(name, turn % 40, turn // 40)], embedder="child")
        print(turn, flush=True)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10**9))
