"""`nexi proof install|status|remove`: manages the local cross-encoder that checks sentences against passages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nexi.cli.exits import EXIT_FAILURE, report_errors

if TYPE_CHECKING:
    from nexi.app.pair_models import Grade, ModelFolder, PublishedModel
    from nexi.config import Config

SCHEMA = "nexi-proof-1"
_HELP = {"help_option_names": ["-h", "--help"]}
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("proof", context_settings=_HELP)
def proof_command() -> None:
    """Install, inspect and remove a local model that checks sentences against their sources.

    Rules compare words, numbers, dates and names. Whether a passage supports a sentence is decided by a model: the configured
    judge, or a small cross-encoder that runs locally for free. Every model is tested before its verdicts count.
    """


@proof_command.command("install", context_settings=_HELP)
@click.argument("model", metavar="NAME|FOLDER")
@click.option("--yes", is_flag=True, help="Download without asking.")
@click.option("--from", "mirror", default="", metavar="URL", help="Download the files of NAME from this base URL instead.")
@_as_json
def _install_command(model: str, yes: bool, mirror: str, as_json: bool) -> None:
    """Install a published model by its NAME, or one from a FOLDER.

    A folder contains model.onnx, tokenizer.json and config.json. The files are copied, pinned by hash and tested; an installed
    model is replaced only if the new one works.
    """
    with report_errors(as_json=as_json):
        import asyncio

        from nexi.config import load_config

        config = load_config()
        folder = Path(model).expanduser().resolve()
        if not folder.is_dir():
            _ask_consent(model, mirror, yes=yes)
        installed, grade = asyncio.run(
            _install_and_grade(config, model, folder if folder.is_dir() else None, mirror, quiet=as_json)
        )
        _print_model(installed, grade, as_json=as_json)


@proof_command.command("status", context_settings=_HELP)
@_as_json
def _status_command(as_json: bool) -> None:
    """Show the installed model, check its files, and show how often each mark is right."""
    with report_errors(as_json=as_json):
        from nexi.app.pair_models import installed_model, kept_judge_grade, kept_model_grade, model_root
        from nexi.config import load_config
        from nexi.output import write

        config = load_config()
        installed = installed_model(model_root(config))
        if installed:
            installed.check_files()
        _print_model(installed, kept_model_grade(config, installed) if installed else None, as_json=as_json)
        if not as_json:
            write(_marks_text(kept_judge_grade(config)))


@proof_command.command("remove", context_settings=_HELP)
@_as_json
def _remove_command(as_json: bool) -> None:
    """Remove the installed model and its files."""
    with report_errors(as_json=as_json):
        from nexi.app.pair_models import model_root, remove_model
        from nexi.config import load_config
        from nexi.output import print_json, write

        removed = remove_model(model_root(load_config()))
        if as_json:
            print_json({"schema": SCHEMA, "removed": removed})
        else:
            write("Removed the model. Rules and the judge still check sentences.\n" if removed else "No model is installed.\n")
        if not removed:
            raise SystemExit(EXIT_FAILURE)


def _ask_consent(name: str, mirror: str, *, yes: bool) -> None:
    """Show what would be downloaded, and prompt. Raises ConfigError without a terminal."""
    from nexi.app.pair_models import find_published
    from nexi.errors import ConfigError
    from nexi.output import write

    model = find_published(name)
    write(_offer_text(model, mirror), sys.stderr)
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was downloaded", cause="confirming needs a terminal", fix="add --yes to confirm")
    if not click.confirm("Download it?", err=True):
        raise SystemExit(EXIT_FAILURE)


def _offer_text(model: PublishedModel, mirror: str) -> str:
    reads = ", ".join(model.languages) or "any language"
    lines = [f"{model.name}: {model.bytes / 1e6:.0f} MB, licence {model.licence}, reads {reads}", f"revision {model.revision}"]
    lines += [f"{file.sha256}  {model.url_of(file, mirror)}" for file in model.files]
    return "\n".join(lines) + "\n"


async def _install_and_grade(
    config: Config, name: str, folder: Path | None, mirror: str, *, quiet: bool
) -> tuple[ModelFolder, Grade | None]:
    from nexi.app import Nexi
    from nexi.app.pair_models import grade_model, install_model

    async with Nexi(config) as nexi:
        with _download_progress(quiet=quiet) as on_bytes:
            installed, model = await install_model(nexi.ports, name, folder, mirror=mirror, on_bytes=on_bytes)
        try:
            return installed, await grade_model(config, installed, model, nexi.clock)
        finally:
            await model.aclose()


@contextmanager
def _download_progress(*, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show the downloaded size on a terminal."""
    shows = not quiet and sys.stderr.isatty()

    def on_bytes(done: int) -> None:
        if shows:
            sys.stderr.write(f"\r{done / 1e6:.0f} MB")

    yield on_bytes
    if shows:
        sys.stderr.write("\r\x1b[K")


def _print_model(installed: ModelFolder | None, grade: Grade | None, *, as_json: bool) -> None:
    from nexi.output import print_json, write

    if as_json:
        print_json({"schema": SCHEMA, "installed": _model_json(installed) if installed else None, "grade": _grade_json(grade)})
    else:
        write(_model_text(installed, grade))


def _model_json(installed: ModelFolder) -> dict[str, Any]:
    return {
        "name": installed.name,
        "folder": str(installed.path),
        "source": installed.source,
        "revision": installed.revision,
        "licence": installed.licence,
        "languages": list(installed.languages),
        "files": dict(installed.files),
    }


def _grade_json(grade: Grade | None) -> dict[str, Any] | None:
    return {**grade.as_json(), "may_raise": grade.may_raise, "may_be_asked": grade.may_be_asked} if grade else None


def _model_text(installed: ModelFolder | None, grade: Grade | None) -> str:
    from nexi.app.pair_models import describe_grade, published_models
    from nexi.output import clean_line

    if installed is None:
        names = ", ".join(sorted(published_models()))
        return f"No model is installed. Published models: {names}. To install one: nexi proof install NAME|FOLDER\n"
    lines = [
        f"{clean_line(installed.name)}, licence {clean_line(installed.licence) or 'not stated'}, in {installed.path}",
        f"reads {', '.join(map(clean_line, installed.languages)) or 'any language'}; files unchanged since installation",
        describe_grade(grade) if grade else "not tested yet; it will be tested on first use",
    ]
    return "\n".join(lines) + "\n"


def _marks_text(judge: Grade | None) -> str:
    """What each mark means and how often it is right: by rules on labelled sentences, and by the configured judge."""
    from nexi.app.mark_figures import describe_marks
    from nexi.app.pair_models import describe_grade

    lines = [f"{word.replace('_', ' ')}: {text}" for word, text in describe_marks().items()]
    tested = describe_grade(judge) if judge else "not tested yet; test it with nexi doctor --judge, or by asking a question"
    return "\n".join(["", "Marks", *lines, f"The configured judge: {tested}"]) + "\n"
