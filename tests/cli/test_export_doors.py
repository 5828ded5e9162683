"""One table of export formats: every door offers all of it, and each gives the same bytes."""

from __future__ import annotations

import asyncio
import base64
import shutil
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from nexi import sync
from nexi.answers.bibliography import FORMS
from nexi.answers.document import read_markdown
from nexi.answers.export_formats import EXPORT_FORMATS, REFERENCE_FORMATS
from nexi.app import SystemClock
from nexi.config import Config
from nexi.errors import NexiError
from nexi.exports import convert_to_docx, export_run
from nexi.runs.directory import RunDirectory
from tests.cli.command import Command
from tests.raising import has_code
from tests.web import samples
from tests.web.world import serving

every_format = pytest.mark.parametrize("form", EXPORT_FORMATS)


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of Chromium and pandoc, which need not be installed here."""

    async def print_page(made: str) -> bytes:
        return b"%PDF-" + made.encode()

    async def convert(markdown: str) -> bytes:
        return b"PK" + markdown.encode()

    monkeypatch.setattr("nexi.exports.print_to_pdf", print_page)
    monkeypatch.setattr("nexi.exports.convert_to_docx", convert)


def keep_run(home: Path, sample: str = "planets") -> tuple[str, dict[str, bytes]]:
    """A run, and what each format makes of it."""
    runs = RunDirectory(home / "runs", home / "pages", clock=SystemClock())

    async def export() -> tuple[str, dict[str, bytes]]:
        run_id = await samples.keep(runs, samples.SAMPLES[sample]())
        return run_id, {form: await export_run(runs, runs.pages, run_id, form) for form in EXPORT_FORMATS}

    return asyncio.run(export())


def test_the_references_of_the_table_are_those_that_can_be_made() -> None:
    assert set(FORMS) == set(REFERENCE_FORMATS)
    assert len({known.suffix for known in EXPORT_FORMATS.values()}) == len(EXPORT_FORMATS)


@every_format
def test_the_command_and_the_library_give_the_same_bytes(nexi: Command, form: str) -> None:
    run_id, made = keep_run(nexi.home)
    assert nexi("export", run_id, "--format", form).code == 0
    assert Path(f"nexi-{run_id}.{EXPORT_FORMATS[form].suffix}").read_bytes() == made[form]
    assert sync.export(run_id, form, Config(home=nexi.home)) == made[form]


def test_the_page_and_http_offer_every_format_with_the_same_bytes(tmp_path: Path) -> None:
    run_id, made = keep_run(tmp_path)

    async def read() -> None:
        async with serving(tmp_path) as served:
            offered = (await served.client.get(f"/page/runs/{run_id}")).json()["exports"]
            assert [each["format"] for each in offered] == list(EXPORT_FORMATS)
            document = (await served.client.get("/openapi.json")).json()
            (parameter,) = [
                each for each in document["paths"]["/v1/runs/{id}/result"]["get"]["parameters"] if each["name"] == "format"
            ]
            assert parameter["schema"]["enum"] == list(EXPORT_FORMATS)
            for known in EXPORT_FORMATS.values():
                file = await served.client.get(f"/page/runs/{run_id}/export?format={known.name}")
                result = await served.client.get(f"/v1/runs/{run_id}/result?format={known.name}")
                chosen = await served.client.get(f"/v1/runs/{run_id}/result", headers={"accept": known.media_type})
                assert [file.content, result.content, chosen.content] == [made[known.name]] * 3
                assert result.headers["content-type"].partition(";")[0] == known.media_type
                assert "default-src 'none'" in result.headers["content-security-policy"]

    asyncio.run(read())


def test_http_says_what_is_missing_for_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("shutil.which", lambda _: None)

    async def read() -> list[tuple[int, str]]:
        async with serving(tmp_path) as served:
            run_id = await samples.keep(served.app.state.nexi.runs(), samples.bare())
            replies = [await served.client.get(f"/v1/runs/{run_id}/result?format={f}") for f in ("pdf", "docx", "ris")]
            return [(reply.status_code, reply.json()["error"]["code"]) for reply in replies]

    assert asyncio.run(read()) == [(501, "no_browser"), (501, "no_pandoc"), (404, "no_references")]


def test_mcp_gives_every_format_as_a_resource_and_from_its_tool(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the mcp SDK is not installed")
    from tests.mcp.world import config_for, inside

    run_id, made = keep_run(tmp_path)

    async def read() -> None:
        async with inside(config_for("http://127.0.0.1:9", tmp_path)) as (client, _):
            templates = {t.uri_template for t in (await client.list_resource_templates()).resource_templates}
            for known in EXPORT_FORMATS.values():
                assert f"nexi://exports/{{run_id}}/{known.name}" in templates
                (content,) = (await client.read_resource(f"nexi://exports/{run_id}/{known.name}")).contents
                assert (content.mime_type, read_body(content)) == (known.media_type, made[known.name])
                told = await client.call_tool("nexi_research_result", {"run_id": run_id, "format": known.name})
                (block,) = told.content
                if known.name != "md":
                    assert read_body(block.resource) == made[known.name]  # type: ignore[union-attr]
            wrong = await client.call_tool("nexi_research_result", {"run_id": run_id, "format": "exe"})
            assert wrong.is_error

    asyncio.run(read())


def read_body(content: object) -> bytes:
    text = getattr(content, "text", None)
    return text.encode() if text is not None else base64.b64decode(content.blob)  # type: ignore[attr-defined]


async def test_a_format_that_is_not_in_the_table_is_refused(tmp_path: Path) -> None:
    runs = RunDirectory(tmp_path / "runs", tmp_path / "pages", clock=SystemClock())
    run_id = await samples.keep(runs, samples.planets())
    with pytest.raises(NexiError, match="'exe' is no format"):
        await export_run(runs, runs.pages, run_id, "exe")


# Markdown


@pytest.mark.parametrize("sample", ["planets", "rtl"])
def test_every_markdown_has_its_question_its_front_matter_and_links(tmp_path: Path, sample: str) -> None:
    run_id, made = keep_run(tmp_path, sample)
    text = made["md"].decode()
    assert text.startswith("---\nquestion: ")
    assert f'run: "{run_id}"' in text.partition("\n---\n")[0]
    sources = read_markdown(text).sources
    assert all(f"[\\[{source.number}\\]]({source.url})" in text for source in sources)
    assert sources


# Word


def install_pandoc(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    pandoc = folder / "pandoc"
    pandoc.write_text(f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\n{program}\n")
    pandoc.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_a_word_file_says_question_date_and_model_at_its_top(tmp_path: Path) -> None:
    run_id, made = keep_run(tmp_path)
    today = made["md"].decode().partition('date: "')[2][:10]
    head = (
        f"PK# How large the planets are\n\n*How large are the planets?*\n\n*{today} · moon-1 · nexi run {run_id}*\n\n## Sizes"
    )
    assert made["docx"].decode().startswith(head)
    run_id, made = keep_run(tmp_path, "rtl")
    assert made["docx"].decode().startswith(f"PK# كم يبعد القمر عن الأرض؟\n\n*{today} · moon-1 · nexi run {run_id}*\n\n")


async def test_pandoc_makes_the_word_file_and_reads_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = (
        "out = next(a for a in sys.argv if a.startswith('--output=')).partition('=')[2]\n"
        "page = next(a for a in sys.argv if a.endswith('.md'))\n"
        "Path(out).write_bytes(b'PK' + Path(page).read_bytes() + b' sandboxed' * ('--sandbox' in sys.argv))"
    )
    install_pandoc(tmp_path, monkeypatch, copy)
    assert await convert_to_docx("# Moon") == b"PK# Moon sandboxed"


async def test_a_pandoc_that_fails_in_its_sandbox_is_kept_from_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of Debian 12 ends so: it does not find its own files there."""
    copy = (
        "if '--sandbox' in sys.argv: sys.exit(97)\n"
        "values = dict(a.partition('=')[::2] for a in sys.argv)\n"
        "Path(values['--output']).write_bytes(b'PK' + Path(values['--lua-filter']).read_bytes())"
    )
    install_pandoc(tmp_path, monkeypatch, copy)
    assert await convert_to_docx("# Moon") == b"PKfunction Image(image) return image.caption end"


@pytest.mark.skipif(shutil.which("pandoc") is None, reason="needs pandoc: apt-get install pandoc")
async def test_the_installed_pandoc_writes_headings_tables_and_links_and_opens_no_file(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (8, 8)).save(picture := tmp_path / "private.png")
    text = f"# Moon\n\n| moon | km |\n|---|---|\n| Phobos | 22 |\n\nFar [1](https://moon.example/a).\n\n![a map]({picture})"
    made = ZipFile(BytesIO(await convert_to_docx(text)))
    words, links = (made.read(f"word/{name}").decode() for name in ("document.xml", "_rels/document.xml.rels"))
    assert all(part in words for part in ("Heading1", "<w:tbl>", "Phobos", "a map"))
    assert "https://moon.example/a" in links
    assert [name for name in made.namelist() if "media/" in name] == []


async def test_a_pandoc_that_fails_or_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_pandoc(tmp_path, monkeypatch, "sys.exit(3)")
    with pytest.raises(NexiError, match="pandoc ended with status 3", check=has_code("not_printed")):
        await convert_to_docx("# Moon")
    install_pandoc(tmp_path, monkeypatch, "import signal; signal.pause()")
    with pytest.raises(NexiError, match=r"pandoc took more than 0\.2 s"):
        await convert_to_docx("# Moon", patience_s=0.2)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NexiError, match="pandoc is not installed", check=has_code("no_pandoc")):
        await convert_to_docx("# Moon")
