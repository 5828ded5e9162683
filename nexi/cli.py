"""The command line: parse, call the app, show events. No decisions.

Everything heavy is imported by the command that needs it, so that `nexi --version` and `nexi --help` are instant.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Self

import click

from nexi import __version__
from nexi.errors import ConfigError, NexiError

if TYPE_CHECKING:
    from nexi.app import Run, RunResult, SearchOptions
    from nexi.config import Config
    from nexi.output import Screen

EXIT_FAILURE, EXIT_USAGE, EXIT_CANCELLED, EXIT_TERMINATED = 1, 2, 130, 143


class QuestionGroup(click.Group):
    """A group whose first word begins a question unless it is the name of a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["ask", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("nexi", '[OPTIONS] "QUESTION"')


@click.group(cls=QuestionGroup, add_help_option=False)
def main() -> None:
    """Ask the web, keep what you learn, prove every sentence."""


@main.command("ask", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1, metavar='"QUESTION"')
@click.option("-q", "--query-text", help="The question, as an option.")
@click.option("-e", "--effort", type=click.Choice(["s", "m", "l"]), help="Quick, balanced or thorough.")
@click.option("--max-iter", type=click.IntRange(1), metavar="N", help="At most N rounds of thinking.")
@click.option(
    "--time-target", "--max-timeout", type=click.FloatRange(0, min_open=True), metavar="S", help="Answer after about S seconds."
)
@click.option("--max-len", type=click.IntRange(1), metavar="N", help="At most N tokens of answer.")
@click.option("-m", "--model", help="The model; `extractive` needs none.")
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Spend at most this much.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Use at most N tokens in all.")
@click.option("-v", "--verbose", is_flag=True, help="Show every model call, tool call and token count.")
@click.option("--plain", is_flag=True, help="No colours, no emoji.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Show the last N searches.")
@click.option("--prev", is_flag=True, help="Show the latest answer again.")
@click.option("--show", metavar="ID", help="Show the answer with this id.")
@click.option("--clear-history", is_flag=True, help="Delete all search history.")
@click.option("--config", "show_config", is_flag=True, help="Print the path of the config file.")
@click.option("--edit-config", is_flag=True, help="Open the config file in an editor.")
@click.version_option(__version__, "--version", prog_name="nexi")
@click.pass_context
def ask(ctx: click.Context, /, words: tuple[str, ...], **options: Any) -> None:
    """Ask the web, keep what you learn, prove every sentence.

    \b
      nexi "how do rust async traits work"
      echo "what is the capital of france" | nexi --plain
      nexi                                   (a prompt for questions and follow-ups)
      nexi demo                              (try it with no key and no network)
    """
    with failing_politely(as_json=options["as_json"]):
        _dispatch(ctx, words, options)


@main.command("demo")
@click.argument("question", required=False)
@click.option("--plain", is_flag=True, help="No colours, no emoji.")
def demo(question: str | None, plain: bool) -> None:
    """Ask nexi's own handbook, served on loopback: no key, no network."""
    with failing_politely():
        _demo(question, plain)


class failing_politely:  # noqa: N801 - read as a statement: with failing_politely()
    """Turns errors into message and exit code: the one place where a door catches."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NexiError):
            from nexi.output import print_failure

            print_failure(error, as_json=self._as_json)
            raise SystemExit(error.exit_code) from None
        if isinstance(error, KeyboardInterrupt):
            raise SystemExit(EXIT_CANCELLED) from None
        if isinstance(error, BrokenPipeError):
            _leave_quietly()


class Interrupts:
    """Ctrl-C and SIGTERM while runs go on. The first Ctrl-C asks for the answer from what was read; a second one cancels,
    and so does SIGTERM. Used as a block around it all, it tells the shell; `code` is 0 while no signal came."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.code = 0
        self._as_json = as_json

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self.code:
            return
        if isinstance(error, NexiError):
            from nexi.output import print_failure

            print_failure(error, as_json=self._as_json)
        raise SystemExit(self.code) from None

    @contextmanager
    def heard_by(self, stop: Callable[[], None]) -> Iterator[None]:
        """Let signals reach the run of the calling task; elsewhere than in a main thread they stay as they were."""
        import asyncio
        import signal

        loop, task, before = asyncio.get_running_loop(), asyncio.current_task(), signal.getsignal(signal.SIGINT)
        self.code = 0  # what came before had its answer

        def interrupt() -> None:
            if not self.code:
                self.code = EXIT_CANCELLED
                return stop()
            loop.remove_signal_handler(signal.SIGINT)  # a third Ctrl-C is an ordinary one
            return cancel(EXIT_CANCELLED)

        def cancel(code: int) -> None:
            self.code = code
            if task:
                task.cancel()

        try:
            loop.add_signal_handler(signal.SIGINT, interrupt)
            loop.add_signal_handler(signal.SIGTERM, cancel, EXIT_TERMINATED)
        except (NotImplementedError, RuntimeError, ValueError):
            yield
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)


def _leave_quietly() -> NoReturn:
    """The reader of our output went away; Python must not complain while it flushes."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0) from None


def _dispatch(ctx: click.Context, words: tuple[str, ...], options: dict[str, Any]) -> None:
    """The seeds' precedence: config commands, history commands, argument, --query-text, stdin, REPL."""
    if options["show_config"] or options["edit_config"]:
        return _config_command(edit=options["edit_config"])
    if options["last"] or options["prev"] or options["show"] or options["clear_history"]:
        return _history_command(options)
    question = " ".join(words) or options["query_text"] or ""
    if not question and not sys.stdin.isatty():
        question = _read_stdin()
    if not question and not words and sys.stdin.isatty():
        return _interactive_mode(options)
    return _run_search_command(question, options)


def _read_stdin() -> str:
    return sys.stdin.buffer.read(4_000_000).decode("utf-8", "replace")


def _config_command(*, edit: bool) -> None:
    from nexi.config import DEFAULT_CONFIG, load_config, save_config
    from nexi.output import write

    if not edit:
        from nexi.config import nexi_home

        return write(f"{nexi_home() / 'config.json'}\n")
    import os
    import subprocess

    try:
        path = load_config().config_path
    except ConfigError:
        from nexi.config import nexi_home

        path = nexi_home() / "config.json"
    if not path.exists():
        from nexi.config import Config

        save_config(Config.from_dict(DEFAULT_CONFIG), path)
    from nexi.config import editor_command

    command = editor_command()
    try:
        subprocess.run([*command, os.fspath(path)], check=False)  # noqa: S603 - the user's own editor
    except OSError as error:
        raise ConfigError(
            f"the editor {command[0]!r} cannot be started", cause=str(error), fix=f"set EDITOR, or open {path} yourself"
        ) from error
    return None


def _history_command(options: dict[str, Any]) -> None:
    if options["clear_history"]:
        return _clear_history()
    if options["last"]:
        return _show_last_n(options["last"])
    if options["prev"]:
        return _show_prev()
    return _show_by_id(options["show"])


def _clear_history() -> None:
    from nexi.config import nexi_home
    from nexi.history import clear_history
    from nexi.output import print_success

    clear_history()
    print_success(f"History deleted. Runs and pages stay in {nexi_home()}.")


def _show_last_n(n: int) -> None:
    """Previews of the last n searches, newest first."""
    from nexi.history import format_entry_preview, get_last_n_entries
    from nexi.output import write

    entries = get_last_n_entries(n)
    if not entries:
        raise NexiError("the history is empty", code="not_found", fix='ask something: nexi "your question"')
    write("\n\n".join(format_entry_preview(e, i) for i, e in enumerate(entries, 1)) + "\n")


def _show_prev() -> None:
    """The latest search in full."""
    from nexi.history import format_entry_full, get_latest_entry
    from nexi.output import write

    entry = get_latest_entry()
    if entry is None:
        raise NexiError("the history is empty", code="not_found", fix='ask something: nexi "your question"')
    write(format_entry_full(entry) + "\n")


def _show_by_id(entry_id: str) -> None:
    """One search in full."""
    from nexi.history import format_entry_full, get_entry_by_id
    from nexi.output import write

    entry = get_entry_by_id(entry_id)
    if entry is None:
        raise NexiError(f"no search has the id {entry_id}", code="not_found", fix="nexi --last 10 lists ids")
    write(format_entry_full(entry) + "\n")


def _run_search_command(question: str, options: dict[str, Any]) -> None:
    """One question, one answer."""
    import asyncio

    from nexi.output import set_plain_mode

    config = _load(options)
    set_plain_mode(options["plain"])
    with Interrupts(as_json=options["as_json"]) as interrupts:
        result = asyncio.run(_search(config, question, options, interrupts))
        _print_result(result, question, config, options)


def _print_result(result: RunResult, question: str, config: Config, options: dict[str, Any]) -> None:
    from nexi.output import print_answer, print_result_summary, write

    if options["as_json"]:
        import json

        from nexi.output import answer_json

        write(json.dumps(answer_json(result, question, config.endpoint("answer").model), ensure_ascii=False) + "\n")
        return
    sources = {s.url: s.number for s in result.answer.sources}
    print_answer(result.answer.text, url_citations=sources, url_to_title={s.url: s.title for s in result.answer.sources})
    end = result.finished
    if options["verbose"] or sys.stderr.isatty():
        print_result_summary(end.iterations, end.seconds, end.usage.total, [s.url for s in result.session.book.sources])


async def _search(config: Config, question: str, options: dict[str, Any], interrupts: Interrupts) -> RunResult:
    from nexi.app import Nexi
    from nexi.output import Screen

    _say_what_answers(config)
    screen = Screen(verbose=options["verbose"], quiet=options["as_json"])
    async with Nexi(config) as nexi:
        return await _follow(nexi.search(question, options=_search_options(options)), screen, interrupts)


async def _follow(search: Run, screen: Screen, interrupts: Interrupts) -> RunResult:
    """Show a run to its end, or to the signal that ends it."""
    async with search as run:
        with interrupts.heard_by(run.stop):
            try:
                async for event in run:
                    screen.show(event)
            finally:
                screen.end()
        return run.result()


def _search_options(options: dict[str, Any]) -> SearchOptions:
    from nexi.app import SearchOptions

    return SearchOptions(
        effort=options["effort"] or "",
        max_iterations=options["max_iter"],
        time_target=options["time_target"],
        max_output_tokens=options["max_len"],
    )


def _load(options: dict[str, Any]) -> Config:
    from nexi.config import load_config
    from nexi.output import print_warning

    config = load_config()
    for note in config.notes:
        print_warning(note)
    flags = {"model": options["model"], "max_cost": options["max_cost"], "max_tokens": options["max_tokens"]}
    return config.override(**{k: v for k, v in flags.items() if v is not None})


def _say_what_answers(config: Config) -> None:
    """An answer without a model is said to be one."""
    from nexi.output import write

    if config.endpoint("answer").model == "extractive":
        write(
            "No model is configured: the built-in extractive model answers with passages. Add one: nexi --edit-config\n",
            sys.stderr,
        )


def _interactive_mode(options: dict[str, Any]) -> None:
    """Questions and follow-ups in one session, until exit."""
    import asyncio

    with Interrupts() as interrupts:
        asyncio.run(_converse(_load(options), options, interrupts))


async def _converse(config: Config, options: dict[str, Any], interrupts: Interrupts) -> None:
    import asyncio

    from nexi.app import Nexi
    from nexi.output import Screen, print_answer, print_failure, set_plain_mode, write
    from nexi.session import Session

    set_plain_mode(options["plain"])
    _say_what_answers(config)
    write("Ask a question. exit, quit or q leaves; help or h helps.\n", sys.stderr)
    session = Session()
    async with Nexi(config) as nexi:
        while (line := await asyncio.to_thread(_read_line)) is not None:
            if line in ("help", "h"):
                write("Type a question; a follow-up may refer to what was said. exit, quit or q leaves.\n", sys.stderr)
                continue
            try:
                run = nexi.search(line, options=_search_options(options), session=session)
                result = await _follow(run, Screen(verbose=options["verbose"]), interrupts)
            except NexiError as error:
                print_failure(error)
                continue
            cited = result.answer.sources
            print_answer(
                result.answer.text, url_citations={s.url: s.number for s in cited}, url_to_title={s.url: s.title for s in cited}
            )
    interrupts.code = 0  # leaving by the prompt is no interruption


def _read_line() -> str | None:
    """The next question; None when the user leaves."""
    while True:
        try:
            line = input("nexi> ").strip()
        except EOFError:
            return None
        if line in ("exit", "quit", "q"):
            return None
        if line:
            return line


def _demo(question: str | None, plain: bool) -> None:
    import tempfile
    from pathlib import Path

    from nexi.config import Config
    from nexi.demo import QUESTION, serve_handbook
    from nexi.output import print_answer, set_plain_mode, write

    question = question or QUESTION
    set_plain_mode(plain)
    folder = tempfile.TemporaryDirectory(prefix="nexi-demo-")
    with Interrupts() as interrupts, serve_handbook() as address, folder as home:
        config = Config(
            model="extractive",
            searxng_url=f"http://{address}",
            search_backend="searxng",
            content_fetcher="http",
            allow_private=(address,),
            home=Path(home),
        )
        write(f"nexi's handbook is served on {address}.\nQuestion: {question}\n", sys.stderr)
        result = _answer_demo(config, question, interrupts)
        cited = result.answer.sources
        print_answer(
            result.answer.text, url_citations={s.url: s.number for s in cited}, url_to_title={s.url: s.title for s in cited}
        )
        _tell_demo(config, result)


def _answer_demo(config: Config, question: str, interrupts: Interrupts) -> RunResult:
    import asyncio

    from nexi.app import Nexi
    from nexi.output import Screen

    async def go() -> RunResult:
        async with Nexi(config) as nexi:
            return await _follow(nexi.search(question), Screen(verbose=True), interrupts)

    return asyncio.run(go())


def _tell_demo(config: Config, result: RunResult) -> None:
    from nexi.history import get_entry_by_id
    from nexi.output import write

    entry = get_entry_by_id(result.id, config.history_path)
    end = result.finished
    kept = f"History holds it as {entry.id}." if entry else "It is not in the history."
    write(f"\n{end.pages} pages, {end.model_calls} calls of the built-in model, {end.seconds:.2f} s. {kept}\n", sys.stderr)
