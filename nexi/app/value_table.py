"""Tables of values: which documents are read, who fills in a row, and what is kept, so that asking again costs nothing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from itertools import count, islice
from pathlib import Path

from msgspec import Struct

from nexi.app.components import read_page
from nexi.app.documents import files_in, read_document
from nexi.app.factory import PortFactory, compare_texts
from nexi.app.gate import open_gate
from nexi.app.intake import Step, place_of
from nexi.app.request import RunLimits, budget_for
from nexi.errors import FetchError, LLMError, PageLimitError, QuestionError
from nexi.files import keep_json, read_json_as
from nexi.ports import LLM
from nexi.prompts import render
from nexi.tables.cells import Cell, Column, Row, ValueTable, parse_columns, place_quote
from nexi.tables.picking import Saying, choose_labelled, choose_saying, list_labelled, list_sentences, pick_value
from nexi.tables.reading import ask_row
from nexi.tasks import gather_all
from nexi.types import Page
from nexi.urls import is_web_url

STORED = "file:"  # the beginning of the address of a stored file
MAX_DOCUMENTS = 500
MAX_PARALLEL_CALLS = 4
MAX_LABELLED = 20_000  # values of one document that are looked at by their names
MAX_SAYINGS = 3_000  # values and sentences, each, that are looked at by what they say
NOTHING_TO_READ = 'name files, folders or web addresses: nexi table "price, launch date" reports/'


class TableRequest(Struct, frozen=True):
    """Columns as they are typed, and the documents: web addresses, addresses of stored files and, for who may, paths."""

    columns: tuple[str, ...]
    documents: tuple[str, ...]
    is_local: bool = False  # nothing leaves this machine
    reads_files: bool = False  # whether a path of this machine may be named
    limits: RunLimits = RunLimits()


class TableWork:
    """The work on one table. `ports` have the scope of the request."""

    def __init__(self, ports: PortFactory, request: TableRequest, on_step: Callable[[Step], None] = lambda _: None) -> None:
        self._ports, self._request, self._on_step = ports, request, on_step
        self._columns = parse_columns(request.columns)
        self._gate = open_gate(ports, budget=budget_for(ports.config, request.limits), is_local=request.is_local)
        self._gaps: dict[str, None] = {}

    async def run(self) -> ValueTable:
        """Raises NexiError where there is no document."""
        documents = await asyncio.to_thread(self._list_documents)
        llm: LLM | None = None  # where there is only the built-in one
        if self._gate.may_ask("answer") and not self._ports.config.endpoint("answer").is_extractive:
            llm = self._gate.open_llm("answer", "extract")
        elif not self._gate.may_ask("answer"):
            self._gaps["the model is on another machine, so it was not asked"] = None
        places, numbers = asyncio.Semaphore(MAX_PARALLEL_CALLS if llm else 1), count(1)

        async def fill(name: str, target: str | Path) -> Row:
            async with places:
                row = await self._fill_row(name, target, llm)
            self._on_step(Step(name, "skipped" if row.problem else "read", next(numbers), len(documents)))
            return row

        rows = await gather_all(fill(name, target) for name, target in documents)
        return ValueTable(self._columns, tuple(rows), llm.name if llm else "", "; ".join(self._gaps))

    def _list_documents(self) -> list[tuple[str, str | Path]]:
        documents: dict[str, tuple[str, str | Path]] = {}
        for target in self._request.documents:
            if is_web_url(target):
                if self._request.is_local:
                    fix = "leave it out, or name files only"
                    raise QuestionError("a page cannot be fetched within the local scope", fix=fix)
                documents.setdefault(target, (target, target))
            elif target.startswith(STORED):
                documents.setdefault(target, (target.rpartition("/")[2], target))
            elif not self._request.reads_files:
                fix = "name pages with http:// or https://, or stored files"
                raise QuestionError(f"{target[:200]!r} is not an address", fix=fix)
            else:
                path, is_folder = place_of(target)
                for file in files_in(path) if is_folder else [path]:
                    name = str(file.relative_to(path)) if is_folder else file.name
                    documents.setdefault(str(file), (name, file))
        if not documents:
            raise QuestionError("there is no document to read", fix=NOTHING_TO_READ)
        if len(documents) > MAX_DOCUMENTS:
            self._gaps[f"only the first {MAX_DOCUMENTS} of {len(documents)} documents were read"] = None
        return list(documents.values())[:MAX_DOCUMENTS]

    async def _fill_row(self, name: str, target: str | Path, llm: LLM | None) -> Row:
        url = str(target)
        try:
            page = await read_document(target, url) if isinstance(target, Path) else await self._find_page(target)
        except FetchError as error:
            return Row(name, url, cells=tuple(Cell() for _ in self._columns), problem=str(error))
        plain = await asyncio.to_thread(_find_cells, page, self._columns)
        cells = await self._ask_model(llm, page, plain) if llm else plain
        return Row(name, url, page.title, page.updated or page.published, page.digest, tuple(cells))

    async def _find_page(self, url: str) -> Page:
        """A page of the knowledge base or of the web. Raises FetchError."""
        if url.startswith(STORED):
            if page := await self._ports.knowledge().page(url):
                return page
            raise FetchError("it is not in the knowledge base", reason="error")
        if not self._gate.meter.take_page():
            raise PageLimitError(f"{url[:200]} is not fetched", cause="max_pages is reached")
        return await read_page(self._ports, url)

    async def _ask_model(self, llm: LLM, page: Page, plain: Sequence[Cell]) -> Sequence[Cell]:
        """The row by a model; a cell that the document does not bear out is what was found without one."""
        prompt = render("table_row", folder=self._ports.config.prompts_dir)
        key = "\0".join((llm.name, prompt, page.digest, *(column.text for column in self._columns)))
        place = self._ports.config.page_cache_dir.parent / "tables" / hashlib.sha256(key.encode()).hexdigest()
        if (cells := await asyncio.to_thread(read_json_as, place, list[Cell])) and len(cells) == len(plain):
            return cells
        try:
            replies = await ask_row(llm, prompt, page, self._columns, self._gate.meter.deadline)
        except (LLMError, ValueError) as error:
            self._gaps[f"some rows were filled in without the model: {error}"] = None
            return plain
        cells = [fallback if cell is None else cell for cell, fallback in zip(replies, plain, strict=True)]
        await asyncio.to_thread(keep_json, place, cells)
        return cells


def _find_cells(page: Page, columns: Sequence[Column]) -> list[Cell]:
    """A row without a model: values under their names first, then what the sentence says that is nearest to the column."""
    labelled = list(islice(list_labelled(page.text), MAX_LABELLED))
    sayings = [Saying(f"{v.name}: {v.value}", v.start, v.value) for v in labelled[:MAX_SAYINGS]]
    sayings += [Saying(text, start) for start, text in islice(list_sentences(page.text), MAX_SAYINGS)]
    cells: list[Cell] = []
    for column in columns:
        if exact := choose_labelled(column, labelled):
            cells.append(place_quote(page.text, exact.value, exact.quote, exact.start))
        elif saying := choose_saying(column, sayings, compare_texts):
            quote = next((v.quote for v in labelled if v.start == saying.start), saying.text) if saying.value else saying.text
            cells.append(place_quote(page.text, pick_value(column, saying), quote, saying.start))
        else:
            cells.append(Cell())
    return cells
