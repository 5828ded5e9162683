"""Schemas: JSON schemas of nexi's own paths, and how responses and parameters are written down for OpenAPI.

The same schema checks a body and documents it, so that the document cannot say anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

STATES = ("running", "finished", "stopped", "failed", "unfinished", "damaged")
MODES = ("search", "agentic", "research")
FOCUS = ("web", "docs", "discussions", "papers", "code", "news", "places", "local")
MOST_TASKS = 5
_SITES = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 253}, "maxItems": 50}

_MAX_COST = {"type": "number", "minimum": 0.000001, "maximum": 100_000, "description": "In US dollars."}
LIMITS: dict[str, Any] = {  # of work that is no run: a check, a table
    "time_target": {"type": "number", "minimum": 0.001, "maximum": 86400, "description": "Stop after so many seconds."},
    "max_tokens": {"type": "integer", "minimum": 1},
    "max_cost": _MAX_COST,
}

OPTIONS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "effort": {"type": "string", "enum": ["s", "m", "l"]},
        "max_iterations": {"type": "integer", "minimum": 1, "maximum": 1000},
        "time_target": {
            "type": "number",
            "minimum": 0.001,
            "maximum": 86400,
            "description": "Answer after about so many seconds.",
        },
        "max_output_tokens": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        "max_cost": _MAX_COST,
        "system_prompt": {"type": "string", "maxLength": 100_000, "description": "Instructions of your own."},
        "depth": {"type": "integer", "minimum": 0, "maximum": 3, "description": "Of research; 0 lets the coordinator choose."},
        "length": {"enum": ["brief", "standard", "long"], "description": "Of a report: about 300, 1,000 or 3,000 words."},
        "plan": {
            "type": "boolean",
            "description": "Research waits with its plan (the event agenda_proposed) until POST /v1/runs/{id}/plan.",
        },
        "model": {
            "type": "string",
            "maxLength": 200,
            "description": "Another model of the configured endpoint, or `extractive`, which calls no service.",
        },
        "focus": {
            "type": "string",
            "enum": list(FOCUS),
            "description": "Where to look; `local` is the knowledge base only.",
        },
        "count": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Hits a search asks for."},
        "sites": {**_SITES, "description": "Search only these."},
        "excluded_sites": {**_SITES, "description": "Search these not."},
        "time_range": {"type": "string", "enum": ["", "d", "w", "m", "y"]},
        "language": {"type": "string", "maxLength": 20},
        "only_local": {"type": "boolean", "description": "Use the knowledge base alone; nothing is sent to another machine."},
        "completeness_threshold": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of an agentic search."},
        "max_urls_per_iteration": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Of an agentic search."},
        "url_score_threshold": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of an agentic search."},
        "use_search_hints": {"type": "boolean", "description": "Of an agentic search."},
    },
}
AGENTIC = ("completeness_threshold", "max_iterations", "max_urls_per_iteration", "url_score_threshold", "use_search_hints")
NEW_RUN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["question"],
    "properties": {
        "question": {"type": "string", "minLength": 1, "maxLength": 100_000},
        "mode": {"type": "string", "enum": list(MODES)},
        "options": OPTIONS,
        "continues": {"type": "string", "description": "The id of a run whose conversation goes on.", "maxLength": 100},
        "space": {"type": "string", "description": "The space it is asked in: NAME, or NAME@OWNER.", "maxLength": 300},
    },
}
PLAN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "tasks": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_TASKS,
            "items": {"type": "string", "minLength": 1, "maxLength": 2000},
            "description": "The tasks to research instead of the proposed ones.",
        },
    },
}
RUN: dict[str, Any] = {
    "type": "object",
    "required": ["schema", "id", "state", "mode", "question", "created", "last_event_id", "links"],
    "properties": {
        "schema": {"type": "string"},
        "id": {"type": "string"},
        "state": {"type": "string", "enum": list(STATES)},
        "mode": {"type": "string"},
        "question": {"type": "string"},
        "created": {"type": "string"},
        "last_event_id": {"type": "integer"},
        "space": {"type": "string"},
        "links": {"type": "object"},
    },
}
RUNS: dict[str, Any] = {
    "type": "object",
    "required": ["runs"],
    "properties": {"runs": {"type": "array", "items": {"type": "object", "required": ["id", "state", "question", "created"]}}},
}
ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {name: {"type": "string"} for name in ("code", "message", "fix", "parameter")},
        }
    },
}
Named: TypeAlias = Mapping[str, tuple[str, Mapping[str, Any]]]
ID: Named = {"id": ("The id of the run.", {"type": "string", "pattern": "^([0-9a-f]{6}|[0-9a-f]{32})$"})}
ANSWERS = {
    200: "Done.",
    201: "Made.",
    202: "Accepted.",
    204: "Nothing to say.",
}


def build_responses(outcomes: Mapping[int, Any], error: Mapping[str, Any] = ERROR) -> dict[str, Any]:
    """The responses of an operation. An outcome is a schema, media types, or None for no body; all else is an error."""
    told = {str(status): {"description": ANSWERS[status], **_response_content(outcome)} for status, outcome in outcomes.items()}
    return {
        **told,
        "default": {"description": "Refused or failed; Retry-After says when to ask again.", **_response_content(error)},
    }


def build_parameters(path: Named | None = None, query: Named | None = None) -> list[dict[str, Any]]:
    """The parameters of an operation by name: what each says, and its schema."""
    places = (("path", path or {}), ("query", query or {}))
    return [
        {"name": name, "in": place, "required": place == "path", "description": text, "schema": dict(schema)}
        for place, named in places
        for name, (text, schema) in named.items()
    ]


def _response_content(outcome: Any) -> dict[str, Any]:
    if outcome is None:
        return {}
    if isinstance(outcome, tuple):
        return {"content": {kind: {"schema": {}} for kind in outcome}}
    return {"content": {"application/json": {"schema": dict(outcome)}}}
