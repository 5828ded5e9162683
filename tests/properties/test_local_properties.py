"""Whatever a server on loopback answers, reading it fails for nobody."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nexi.llm import local

KEYS = st.sampled_from(
    [
        "models",
        "data",
        "id",
        "name",
        "model_info",
        "parameters",
        "x.context_length",
        "n_ctx",
        "default_generation_settings",
        "meta",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("num_ctx 4096"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_any_json_is_read(value: Any) -> None:
    names = local.ollama_names(value)
    assert names is None or all(isinstance(name, str) for name in names)
    windows = [*local.ollama_loaded(value).values(), local.llama_cpp_window(value), local.ollama_model("m", value).context]
    for models in (local.lm_studio_models(value), local.listed_models(value)):
        windows += [model.context for model in models or ()]
    assert all(size is None or 0 < size < 10**9 for size in windows)
