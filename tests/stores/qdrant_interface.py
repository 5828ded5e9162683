"""Qdrant's published HTTP interface, as much of it as nexi uses: for each call its body and its result, by schema.

The schemas are qdrant-client's, which are generated from the server's OpenAPI document and refuse fields it does not name.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import TypeAdapter, ValidationError
from qdrant_client.http import models

CALLS: dict[tuple[str, str], tuple[Any, Any]] = {
    ("GET", "/collections/{}/exists"): (None, models.CollectionExistence),
    ("PUT", "/collections/{}"): (models.CreateCollection, bool),
    ("DELETE", "/collections/{}"): (None, bool),
    ("PUT", "/collections/{}/index"): (models.CreateFieldIndex, models.UpdateResult),
    ("PUT", "/collections/{}/points"): (models.PointsList, models.UpdateResult),
    ("POST", "/collections/{}/points"): (models.PointRequest, list[models.Record]),
    ("POST", "/collections/{}/points/scroll"): (models.ScrollRequest, models.ScrollResult),
    ("POST", "/collections/{}/points/query"): (models.QueryRequest, models.QueryResponse),
    ("POST", "/collections/{}/points/count"): (models.CountRequest, models.CountResult),
    ("POST", "/collections/{}/points/delete"): (models.PointIdsList | models.FilterSelector, models.UpdateResult),
    ("PUT", "/collections/{}/points/vectors"): (models.UpdateVectors, models.UpdateResult),
    ("POST", "/collections/{}/points/payload"): (models.SetPayload, models.UpdateResult),
}
PARAMETERS = {"wait", "ordering", "timeout", "consistency"}


def problems(method: str, address: str, body: Any, reply: Any) -> list[str]:
    """What the interface says against a call and the answer a stub gave to it."""
    path, query = urlsplit(address).path, parse_qs(urlsplit(address).query)
    parts = path.strip("/").split("/")
    call = (method, "/".join(["", parts[0], "{}", *parts[2:]]))
    if call not in CALLS:
        return [f"{method} {path} is not in the table"]
    asked, result = CALLS[call]
    found = [f"{method} {path}: unknown parameter {name}" for name in query if name not in PARAMETERS]
    if (asked is None) != (body is None):
        found.append(f"{method} {path}: {'a' if body is not None else 'no'} body")
    found += _against(asked, body, f"{method} {path}, body") if asked is not None else []
    return found + _against(result, reply["result"], f"{method} {path}, result")


def _against(schema: Any, value: Any, where: str) -> list[str]:
    try:
        TypeAdapter(schema).validate_python(value)
    except ValidationError as error:
        return [f"{where}: {error}"]
    return []
