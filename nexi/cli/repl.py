"""The interactive prompt: questions, follow-ups and slash commands in one session.

A search that is stopped or fails returns to the prompt; only leaving it, or SIGTERM, ends it. At the end input is read, with a
line editor on a capable terminal, else line by line. Neither blocks a signal: Ctrl-C clears the line, SIGTERM cancels the
calling task.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nexi.answers.answered import list_readings, narrow_question
from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app import Nexi, RunOpening, RunRequest, RunResult, Session
from nexi.app.conversation import load_last_conversation
from nexi.app.questions import OpenQuestion
from nexi.app.request import RunMode
from nexi.app.research_state import ResearchState
from nexi.cli.delivery import answer_text, copy_answer, deliver_report, print_next_steps, write_text
from nexi.cli.evidence import browser_address, open_browser, select_sources, show_evidence
from nexi.cli.exits import EXIT_CANCELLED, EXIT_TERMINATED, Interrupts, handle_signal
from nexi.cli.flags import FOCUS_KINDS, AskFlags
from nexi.cli.history import DEFAULT_LISTED, _show_last_n
from nexi.cli.research import describe_choices, narrow_by_reply
from nexi.cli.runner import follow_run, load_terminal_config, open_screen, run_request, warn_without_model
from nexi.cli.runs import export_answer
from nexi.cli.settings import run_setup
from nexi.cli.templates import apply_template
from nexi.config import EFFORT_LEVELS, Config, is_dumb_terminal
from nexi.errors import NexiError, StoreError
from nexi.events import RunFinished
from nexi.files import expand_home, lines_from_end, make_private_directory, replace_file
from nexi.output import Screen, clean_line, cost_text, print_failure, print_note, print_sources, print_success, write
from nexi.output.proof import support_by_source
from nexi.types import Message
from nexi.urls import is_web_url

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output as EditorOutput

EXIT_WORDS = ("exit", "quit", "q", "/exit", "/quit", "/q")
HELP_WORDS = ("help", "h", "/help", "/h", "/?")
_LINES = Path(__file__).with_name("slash_commands.txt").read_text(encoding="utf-8").splitlines()
SLASH_COMMANDS: Mapping[str, str] = {line.split()[0]: line for line in _LINES}
GREETING = "Ask a question. Type help for commands, exit to quit."
HELP = "\n  ".join(("Type a question or a follow-up. Ctrl-C stops a search, Alt-Enter inserts a line break.", *_LINES))
MAX_NAME_WORDS = 8
MAX_COPIES = 99
PROMPT = "nexi> "
MAX_HISTORY_LINES = 1000
MAX_INPUT_CHARS = 20_000


def _interactive_mode(flags: AskFlags) -> None:
    config = load_terminal_config(flags.output)
    with Interrupts() as interrupts:
        try:
            asyncio.run(_answer_lines(config, flags, interrupts))
        except asyncio.CancelledError:
            interrupts.code = EXIT_TERMINATED  # nothing but SIGTERM cancels the prompt


async def _answer_lines(config: Config, flags: AskFlags, interrupts: Interrupts) -> None:
    """Read lines at the prompt and handle each, until an exit word or the end of input."""
    warn_without_model(config, flags.model)
    write(GREETING + ("\n" if config.config_path.exists() else "\nType /setup to choose a model.\n"), sys.stderr)
    plain = flags.output.plain or is_dumb_terminal()
    with handle_signal(signal.SIGINT, lambda: None):  # ignore a Ctrl-C between a search and the prompt
        async with _Conversation(config, flags, interrupts) as conversation:
            prompt = open_prompt(config.root / "repl_history", conversation.status_line, plain=plain)
            while True:
                try:
                    line = (await prompt.read()).strip()
                except EOFError:
                    break
                if line in EXIT_WORDS:
                    break
                try:
                    await conversation.handle_line(line)
                except NexiError as error:
                    print_failure(error)
    interrupts.code = 0  # leaving the prompt is not an interruption


class _Conversation:
    """The state of the prompt: the session, the last question and answer, and what slash commands change."""

    def __init__(self, config: Config, flags: AskFlags, interrupts: Interrupts) -> None:
        self._flags, self._interrupts = flags, interrupts
        self._nexi = Nexi(config)
        self._session = Session()
        self._spent: list[RunFinished] = []
        self._question = ""
        self._readings: list[str] = []  # of the last question, while it is open which of them is meant
        self._open_question: OpenQuestion | None = None  # what research waits for
        self._result: RunResult | None = None
        self._earlier_messages: list[Message] = []  # before the last question
        self._ask_again: Callable[[str], Awaitable[None]] = self._ask_question  # how the last question was asked

    async def __aenter__(self) -> _Conversation:
        if self._flags.go_on:
            self._session = await load_last_conversation(self._nexi.runs(), self._nexi.history())
        return self

    async def __aexit__(self, *ending: object) -> None:
        await self._nexi.__aexit__(None, None, None)

    async def handle_line(self, line: str) -> None:
        """Run a command or ask a question. Raises NexiError if that fails."""
        word, _, rest = line.partition(" ")
        readings, self._readings = self._readings, []
        open_question, self._open_question = self._open_question, None
        if open_question and line and (line.isdigit() or (open_question.kind and not line.startswith("/"))):
            await self._research_narrowed(narrow_by_reply(self._question, open_question, line))
        elif line.isdigit() and 0 < int(line) <= len(readings):
            await self._ask_question(narrow_question(self._question, readings[int(line) - 1]))
        elif line in HELP_WORDS:
            write(HELP + "\n", sys.stderr)
        elif word in SLASH_COMMANDS:
            await self._run_command(word, rest.strip())
        elif word.startswith("/") and "/" not in word[1:]:
            near = get_close_matches(word, SLASH_COMMANDS, n=1, cutoff=0.65)
            raise NexiError(f"unknown command {word}", fix=f"did you mean {near[0]}?" if near else "/help lists the commands")
        elif line:
            await self._ask_question(line)

    async def _run_command(self, word: str, rest: str) -> None:
        match word:
            case "/new":
                # settings and files stay
                self._session, self._result, self._question = Session(), None, ""
                self._earlier_messages = []
                print_success("New conversation.")
            case "/deep":
                if not rest:
                    raise NexiError("missing question", fix="/deep QUESTION")
                earlier = [m for m in self._session.messages if m.role in ("user", "assistant")]
                if open_question := await self._nexi.find_open_question(self._build_request(rest, "research"), earlier):
                    self._question, self._open_question = rest, open_question  # asked back once
                    print_note(describe_choices(open_question), None)
                else:
                    await self._research_narrowed(rest)
            case "/retry":
                if not self._question:
                    raise NexiError("nothing to retry", fix="ask a question first")
                self._session.messages[:] = self._earlier_messages
                await self._ask_again(self._question)
            case "/history":
                _show_last_n(_parse_number(rest, "/history 5") if rest else DEFAULT_LISTED)
            case "/cost":
                answers, seconds = len(self._spent), sum(end.seconds for end in self._spent)
                tokens = sum(end.usage.total for end in self._spent)
                counts = f"{answers} answer{'s' * (answers != 1)}, {seconds:.1f} s, {tokens:,} tokens"
                print_note(f"{counts}, {self._total_cost()}")
            case "/setup":
                await asyncio.to_thread(run_setup)  # which prompts at the terminal and runs its own event loop
                config = load_terminal_config(self._flags.output)
                await self._nexi.__aexit__(None, None, None)
                self._nexi = Nexi(config)
                print_success(f"Model: {config.endpoint('answer').model}")
            case "/model" | "/effort" | "/focus" | "/space" | "/file":
                self._change_setting(word, rest)
            case _:
                await self._use_answer(word, rest)

    async def _ask_question(self, question: str) -> None:
        """Search and show the answer. Ctrl-C ends the search, not the conversation."""
        self._ask_again, self._question, self._earlier_messages = self._ask_question, question, list(self._session.messages)
        screen = open_screen(self._flags.output)
        request = self._build_request(apply_template(question, self._flags), "search")
        if result := await self._run_to_answer(self._nexi.run(request, session=self._session), screen):
            screen.finish(result)
            print_next_steps(result, at_prompt=True)
            # the next line may be the number of a reading, or anything else
            self._readings = list_readings(result.answer.text, result.answer.answered)
            if self._readings:
                choices = " · ".join(f"{number} {clean_line(reading)}" for number, reading in enumerate(self._readings, 1))
                print_note(f"Which one do you mean? Type its number: {choices}", None)
            write("\n", sys.stderr)

    async def _research_narrowed(self, question: str) -> None:
        """Research a question that is clear; follow-ups may refer to the report and cite its sources."""
        self._ask_again, self._question = self._research_narrowed, question
        self._earlier_messages = list(self._session.messages)
        screen = open_screen(self._flags.output, research=ResearchState())
        request = self._build_request(question, "research")
        if result := await self._run_to_answer(self._nexi.run(request, session=self._session), screen):
            deliver_report(result, self._flags.output._replace(copy=False, output=None), screen, at_prompt=True)
            write("\n", sys.stderr)

    def _build_request(self, question: str, mode: RunMode) -> RunRequest:
        return replace(run_request(self._flags, question, mode), continues="", door="repl")

    async def _run_to_answer(self, opening: RunOpening, screen: Screen) -> RunResult | None:
        """Run until there is an answer and store it; None if Ctrl-C ended the run."""
        search = asyncio.ensure_future(follow_run(opening, screen, self._interrupts))
        try:
            self._result = await search
        except asyncio.CancelledError:
            if self._interrupts.code != EXIT_CANCELLED:
                search.cancel()
                await asyncio.wait({search})
                raise
            print_note("Stopped.", None, "dim")
            return None
        self._spent.append(self._result.finished)
        return self._result

    def _change_setting(self, word: str, value: str) -> None:
        """Change what holds for the next questions, and show it; "" only shows it."""
        flags = self._flags
        match word:
            case "/model":
                choice = value or flags.model
                config = self._nexi.config.override(model=choice) if choice else self._nexi.config
                model = config.endpoint("answer").model
                if value and model != value:
                    cause = f"no API key is configured, so {model} answers"
                    raise NexiError(f"cannot use {value}", cause=cause, fix="add one: nexi config setup")
                self._flags = flags._replace(model=choice)
                print_success(f"Model: {model}")
            case "/effort":
                if value and value not in EFFORT_LEVELS:
                    cause = "it must be s, m or l"
                    raise NexiError(f"effort {value!r} is unknown", cause=cause, fix="type /effort s, m or l")
                self._flags = flags._replace(effort=value or flags.effort)
                effort = self._flags.effort or self._nexi.config.default_effort
                print_success(f"Effort: {effort} ({EFFORT_LEVELS[effort]['description'].lower()})")
            case "/focus":
                if value and value not in (*FOCUS_KINDS, "none"):
                    cause = f"it must be {', '.join(FOCUS_KINDS)} or none"
                    raise NexiError(f"focus {value!r} is unknown", cause=cause, fix="type /focus docs")
                focus = {"none": "", "": flags.filters.focus}.get(value, value)
                self._flags = flags._replace(filters=flags.filters._replace(focus=focus))
                print_success(f"Focus: {focus or 'none'}")
            case "/space":
                if value:
                    self._flags = flags._replace(space="" if value == "none" else self._nexi.spaces().get(value).address)
                print_success(f"Space: {self._flags.space or 'none'}")
            case "/file":
                if value not in ("", "none") and not is_web_url(value) and not expand_home(value).exists():
                    raise NexiError(f"{value} does not exist", fix="type /file PATH with a file, a folder or a URL")
                if value:
                    self._flags = flags._replace(files=() if value == "none" else (*flags.files, value))
                print_success("Files: " + (", ".join(map(clean_line, self._flags.files)) or "none"))

    def status_line(self) -> str:
        """Model, search service, effort, what else is set, and the cost so far."""
        flags, focus = self._flags, self._flags.filters.focus
        config = self._nexi.config.override(model=flags.model) if flags.model else self._nexi.config
        parts = [
            config.endpoint("answer").model,
            ", ".join(config.search_chain()),
            f"effort {flags.effort or config.default_effort}",
            f"space {flags.space}" if flags.space else "",
            f"focus {focus}" if focus else "",
            f"{len(flags.files)} file{'s' * (len(flags.files) != 1)}" if flags.files else "",
            self._total_cost() if self._spent else "",
        ]
        return clean_line(" · ".join(filter(None, parts)))

    def _total_cost(self) -> str:
        costs = [end.usage.cost for end in self._spent]
        known_costs = [cost for cost in costs if cost is not None]
        return cost_text(sum(known_costs) if len(known_costs) == len(costs) else None)

    async def _use_answer(self, word: str, rest: str) -> None:
        """Show, open, copy or keep the last answer or its sources. Raises NexiError if there is none."""
        match word:
            case "/sources":
                answer = self._last_result().answer
                print_sources(answer.sources, support=support_by_source(answer.review.proof) if answer.review else None)
                if not answer.sources:
                    print_note("The last answer cites no sources.")
            case "/evidence":
                result = self._last_result()
                sources = select_sources(result.answer.sources, _parse_number(rest, "/evidence 1") if rest else None)
                show_evidence(self._nexi.config, result.id, sources, result.answer.review)
            case "/open":
                (source,) = select_sources(self._last_result().answer.sources, _parse_number(rest, "/open 1"))
                url = browser_address(source.number, source.url, source.link)
                if not open_browser(url):
                    write(f"{url}\n")
            case "/copy":
                copy_answer(self._last_result())
            case "/save":
                self._save_answer(rest)
            case "/export":
                form, _, name = rest.partition(" ")
                if form not in EXPORT_FORMATS:
                    message = f"format {form!r} is unknown" if form else "missing format"
                    cause = f"it must be one of {', '.join(EXPORT_FORMATS)}"
                    raise NexiError(message, cause=cause, fix="type /export html")
                await export_answer(self._nexi.runs(), self._last_result().id, form, name.strip() or None)

    def _save_answer(self, name: str) -> None:
        """Save the last answer under this name, or under one made from the question that is free."""
        text = f"# {' '.join(self._question.split())}\n\n{answer_text(self._last_result())}"
        stem = "-".join(re.findall(r"[^\W_]+", self._question.lower())[:MAX_NAME_WORDS])[:60] or "answer"
        names = (f"{stem}.md", *(f"{stem}-{n}.md" for n in range(2, MAX_COPIES)))
        free_path = next((path for file in names if not (path := Path(file)).exists()), Path(names[0]))
        path = expand_home(name) if name else free_path
        try:
            write_text(path, text)
        except (OSError, ValueError) as error:
            cause = getattr(error, "strerror", "") or str(error)
            raise StoreError(f"cannot write {path}", cause=cause, fix="choose another file: /save FILE") from error
        print_success(f"Saved the answer to {path}.")

    def _last_result(self) -> RunResult:
        if self._result is None:
            raise NexiError("no answer yet", fix="ask a question first")
        return self._result


def _parse_number(word: str, example: str) -> int:
    if not (word.isascii() and word.isdigit() and int(word)):
        raise NexiError(f"{word!r} is not a number" if word else "missing number", fix=f"type {example}")
    return int(word)


def open_prompt(history: Path, status: Callable[[], str], *, plain: bool) -> _EditingPrompt | _LinePrompt:
    """Open a line editor with a status bar if the terminal allows it, else read plain lines."""
    can_edit = not plain and sys.stdin.isatty() and sys.stderr.isatty()
    return _EditingPrompt(history, status) if can_edit else _LinePrompt()


class _EditingPrompt:
    """prompt_toolkit, drawing on stderr, so that stdout has answers only; falls back to plain lines if it fails."""

    def __init__(self, history: Path, status: Callable[[], str]) -> None:
        self._history, self._status = history, status
        self._session: PromptSession[str] | None = None
        self._plain: _LinePrompt | None = None

    async def read(self) -> str:
        if self._plain:
            return await self._plain.read()
        try:
            self._session = self._session or _create_session(self._history, self._status)
            with _cancel_on_sigterm():
                return await self._session.prompt_async(set_exception_handler=False)
        except EOFError:
            raise
        except Exception:  # noqa: BLE001 - the edge of a library that meets every terminal there is
            self._plain = _LinePrompt()
            return await self._plain.read()


def _create_session(history: Path, status: Callable[[], str]) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import History
    from prompt_toolkit.shortcuts import CompleteStyle
    from prompt_toolkit.styles import Style

    class InputHistory(History):
        """Earlier input, in a private file; works without one if the disk refuses."""

        def load_history_strings(self) -> Iterable[str]:
            return _read_inputs(history)

        def store_string(self, string: str) -> None:
            _save_input(history, string)

    return PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=lambda width, line, is_wrapped: "" if is_wrapped else "... ".rjust(width),
        key_bindings=_key_bindings(),
        history=InputHistory(),
        completer=WordCompleter(list(SLASH_COMMANDS), sentence=True),
        complete_style=CompleteStyle.READLINE_LIKE,
        complete_while_typing=False,
        bottom_toolbar=status,
        style=Style([("bottom-toolbar", "noreverse dim")]),  # dim text suits light and dark backgrounds
        output=_create_output(),
    )


def _create_output() -> EditorOutput:
    """The output of the line editor, which does not query the cursor: a late reply would look typed."""
    from prompt_toolkit.output import create_output

    if sys.platform == "win32":
        return create_output(stdout=sys.stderr)
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.output.vt100 import Vt100_Output

    def size() -> Size:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
        return Size(rows or 24, columns or 80)

    class Output(Vt100_Output):
        def get_rows_below_cursor_position(self) -> int:
            return 1  # the line editor shows a status bar only if it knows of a row below

    return Output(sys.stderr, size, enable_cpr=False)


def _key_bindings() -> KeyBindings:
    """Enter sends, Alt-Enter inserts a line break, Ctrl-C clears; line breaks in pasted text do not send."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _break(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _clear(event: KeyPressEvent) -> None:
        event.current_buffer.reset()

    return keys


def _read_inputs(path: Path) -> Iterator[str]:
    """Yield earlier inputs, latest first; skip damaged lines."""
    with suppress(OSError):
        for line in islice(lines_from_end(path), MAX_HISTORY_LINES + 1):
            try:
                text = json.loads(line)
            except ValueError:
                continue
            if isinstance(text, str) and text:
                yield text


def _save_input(path: Path, text: str) -> None:
    """Add an input to the file, which keeps the latest, one JSON string per line."""
    latest = [text[:MAX_INPUT_CHARS], *_read_inputs(path)][:MAX_HISTORY_LINES]
    with suppress(OSError):
        make_private_directory(path.parent)
        replace_file(path, "".join(json.dumps(item) + "\n" for item in reversed(latest)).encode())


class _LinePrompt:
    """Reads lines, "" for a cleared one; raises EOFError when the user leaves, as the other prompt does."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._ended = False

    async def read(self) -> str:
        write(PROMPT, sys.stderr)
        with _cancel_on_sigterm():
            try:
                while b"\n" not in self._waiting and not self._ended:
                    piece = await _next_bytes()
                    self._ended = not piece
                    self._waiting += piece
            except _ClearedError:
                write("\n", sys.stderr)
                return ""
        if not self._waiting:
            raise EOFError
        line, _, rest = bytes(self._waiting).partition(b"\n")
        self._waiting[:] = rest
        return line.decode("utf-8", "replace")


class _ClearedError(Exception):
    """Ctrl-C at the prompt."""


async def _next_bytes() -> bytes:
    """Read the next bytes of stdin; b"" at its end."""
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
    ready: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None = None) -> None:
        if not ready.done():
            ready.set_exception(error) if error else ready.set_result(None)

    try:
        loop.add_reader(fd, settle)
    except (NotImplementedError, OSError):  # this loop cannot watch this kind of file
        line: str = await asyncio.to_thread(sys.stdin.readline)
        return line.encode("utf-8", "replace")
    try:
        with handle_signal(signal.SIGINT, lambda: settle(_ClearedError())):
            await ready
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 65536)


@contextmanager
def _cancel_on_sigterm() -> Iterator[None]:
    """Cancel the calling task on SIGTERM, so that the terminal is restored."""
    task = asyncio.current_task()
    with handle_signal(signal.SIGTERM, task.cancel if task else lambda: None):
        yield
