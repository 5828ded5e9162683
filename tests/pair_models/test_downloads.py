"""Published models come byte for byte as they are pinned, or not at all."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from nexi.errors import ConfigError, NexiError
from nexi.pair_models.folder import PublishedFile, PublishedModel, download_model, find_published, published_models
from tests.stub import serving

BODIES = {"model.onnx": b"weights" * 1000, "config.json": b"{}"}


def pinned(**changed: bytes) -> PublishedModel:
    bodies = {**BODIES, **{name.replace("_", "."): body for name, body in changed.items()}}
    files = tuple(
        PublishedFile(name, f"onnx/{name}", len(body), hashlib.sha256(body).hexdigest()) for name, body in bodies.items()
    )
    return PublishedModel("toy", "http://127.0.0.1:9/{repository}/{revision}/{path}", "me/toy", "abc", "MIT", ("en",), files)


def routes() -> dict[str, object]:
    return {f"GET /mirror/onnx/{name}": lambda _, body=body: (200, body) for name, body in BODIES.items()}


async def test_every_file_comes_and_is_counted(tmp_path: Path) -> None:
    counted: list[int] = []
    with serving(routes()) as port:
        paths = await download_model(pinned(), tmp_path, mirror=f"http://127.0.0.1:{port}/mirror", on_bytes=counted.append)
    assert {name: path.read_bytes() for name, path in paths.items()} == BODIES
    assert counted[-1] == sum(map(len, BODIES.values()))
    assert counted == sorted(counted)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"config_json": b"[]"}, "its SHA-256 is another one"),
        ({"config_json": b"{}  "}, "2 bytes came of 4"),
        ({"model_onnx": b"weights"}, "7,000 bytes came of 7"),
    ],
)
async def test_a_file_that_is_not_the_pinned_one_is_refused_and_nothing_stays(
    tmp_path: Path, changed: dict[str, bytes], cause: str
) -> None:
    with serving(routes()) as port, pytest.raises(NexiError) as caught:
        await download_model(pinned(**changed), tmp_path, mirror=f"http://127.0.0.1:{port}/mirror")
    assert (caught.value.code, caught.value.cause) == ("changed", cause)
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_is_not_there_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    with serving({}) as port, pytest.raises(NexiError) as caught:
        await download_model(pinned(), tmp_path, mirror=f"http://127.0.0.1:{port}/mirror")
    assert caught.value.message == "toy could not be downloaded"
    assert "404" in caught.value.cause
    assert "nexi proof install FOLDER" in caught.value.fix


async def test_a_host_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NexiError, match="toy could not be downloaded"):
        await download_model(pinned(), tmp_path)


def test_every_published_model_is_pinned_and_has_a_licence() -> None:
    for model in published_models().values():
        assert {file.name for file in model.files} >= {"model.onnx", "tokenizer.json", "config.json"}
        assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) and file.bytes > 0 for file in model.files)
        assert re.fullmatch(r"[0-9a-f]{40}", model.revision)
        assert model.licence in ("Apache-2.0", "MIT")
        assert model.url_of(model.files[0]).startswith(f"https://huggingface.co/{model.repository}/resolve/{model.revision}/")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        find_published("gpt")
    assert "nli-deberta-v3-xsmall" in caught.value.fix
