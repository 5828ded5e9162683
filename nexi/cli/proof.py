"""`nexi proof install|status|remove`: manages the local cross-encoder that checks sentences against passages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nexi.cli.exits import EXIT_FAILURE
from nexi.cli.flags import HELP, flag, json_option
from nexi.cli.runner import run_with_nexi
from nexi.config import load_config
from nexi.errors import ConfigError
from nexi.files import expand_home
from nexi.output import clean_line, print_json, write

if TYPE_CHECKING:
    from nexi.app import Nexi
    from nexi.app.pair_models import Grade, ModelFolder

SCHEMA = "nexi-proof-1"


@click.group("proof", context_settings=HELP)
def _proof_command() -> None:
    """Install, inspect and remove a local model that checks sentences against their sources.

    Rules compare words, numbers, dates and names. Whether a passage supports a sentence is decided by a model: the configured
    judge, or a small cross-encoder that runs locally for free. Every model is tested before its verdicts count.
    """


@_proof_command.command("install", context_settings=HELP)
@click.argument("model", metavar="NAME|FOLDER")
@flag("--yes", help="Download without asking.")
@click.option("--from", "mirror", default="", metavar="URL", help="Download the files of NAME from this base URL instead.")
@json_option
def _install_command(model: str, yes: bool, mirror: str, as_json: bool) -> None:
    """Install a published model by its NAME, or one from a FOLDER.

    A folder contains model.onnx, tokenizer.json and config.json. The files are copied, pinned by hash and tested; an installed
    model is replaced only if the new one works.
    """
    from nexi.app.pair_models import find_published, grade_model, install_model

    folder = expand_home(model).resolve()
    is_folder = folder.is_dir()
    if not is_folder:
        published = find_published(model)
        reads = ", ".join(published.languages) or "any language"
        write(f"{published.name}: {published.bytes / 1e6:.0f} MB, licence {published.licence}, reads {reads}\n", sys.stderr)
        files = [f"{file.sha256}  {published.url_of(file, mirror)}" for file in published.files]
        write("\n".join((f"revision {published.revision}", *files)) + "\n", sys.stderr)
    if not is_folder and not yes:
        if not sys.stdin.isatty():
            raise ConfigError("nothing was downloaded", cause="confirming needs a terminal", fix="add --yes to confirm")
        if not click.confirm("Download it?", err=True):
            raise SystemExit(EXIT_FAILURE)
    shows_size = not as_json and sys.stderr.isatty()

    def show_size(byte_count: int) -> None:
        if shows_size:
            sys.stderr.write(f"\r{byte_count / 1e6:.0f} MB")

    async def install(nexi: Nexi) -> tuple[ModelFolder, Grade | None]:
        place = folder if is_folder else None
        model_folder, pair_model = await install_model(nexi.ports, model, place, mirror=mirror, on_bytes=show_size)
        if shows_size:
            sys.stderr.write("\r\x1b[K")
        try:
            return model_folder, await grade_model(nexi.config, model_folder, pair_model, nexi.clock)
        finally:
            await pair_model.aclose()

    _print_model(*run_with_nexi(install), as_json=as_json)


@_proof_command.command("status", context_settings=HELP)
@json_option
def _status_command(as_json: bool) -> None:
    """Show the installed model, check its files, and show how often each mark is right."""
    from nexi.app.mark_figures import describe_marks
    from nexi.app.pair_models import describe_grade, installed_model, kept_judge_grade, kept_model_grade, model_root

    config = load_config()
    folder = installed_model(model_root(config))
    if folder:
        folder.check_files()
    _print_model(folder, kept_model_grade(config, folder) if folder else None, as_json=as_json)
    if not as_json:
        judge = kept_judge_grade(config)
        advice = "not tested yet; test it with nexi doctor --judge, or by asking a question"
        marks = "".join(f"{word.replace('_', ' ')}: {text}\n" for word, text in describe_marks().items())
        write(f"\nMarks\n{marks}The configured judge: {describe_grade(judge) if judge else advice}\n")


@_proof_command.command("remove", context_settings=HELP)
@json_option
def _remove_command(as_json: bool) -> None:
    """Remove the installed model and its files."""
    from nexi.app.pair_models import model_root, remove_model

    was_installed = remove_model(model_root(load_config()))
    if as_json:
        print_json({"schema": SCHEMA, "removed": was_installed})
    else:
        removed = "Removed the model. Rules and the judge still check sentences.\n"
        write(removed if was_installed else "No model is installed.\n")
    if not was_installed:
        raise SystemExit(EXIT_FAILURE)


def _print_model(folder: ModelFolder | None, grade: Grade | None, *, as_json: bool) -> None:
    from nexi.app.pair_models import describe_grade, published_models

    if as_json:
        model = folder and {
            "name": folder.name,
            "folder": str(folder.path),
            "source": folder.source,
            "revision": folder.revision,
            "licence": folder.licence,
            "languages": list(folder.languages),
            "files": dict(folder.files),
        }
        rights = grade and {**grade.as_json(), "may_raise": grade.may_raise, "may_be_asked": grade.may_be_asked}
        return print_json({"schema": SCHEMA, "installed": model, "grade": rights})
    if folder is None:
        names = ", ".join(sorted(published_models()))
        return write(f"No model is installed. Published models: {names}. To install one: nexi proof install NAME|FOLDER\n")
    licence, languages = clean_line(folder.licence) or "not stated", ", ".join(map(clean_line, folder.languages))
    return write(
        f"{clean_line(folder.name)}, licence {licence}, in {folder.path}\n"
        f"reads {languages or 'any language'}; files unchanged since installation\n"
        f"{describe_grade(grade) if grade else 'not tested yet; it will be tested on first use'}\n"
    )
