"""Labels of runs: the name, the pin and the shared link that a person gave one, kept beside the runs in one small file.

Above, the history and the sharing of the page; below, files. A label never changes its run, and a file that cannot be read is
as good as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nexi.app import Nexi
from nexi.files import write_json_object

LABELS = "labels.json"


def read_labels(nexi: Nexi) -> dict[str, dict[str, Any]]:
    """Labels by the id of their run."""
    try:
        read = json.loads((nexi.config.personal_dir / "state" / LABELS).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(k): v for k, v in read.items() if isinstance(v, dict)} if isinstance(read, dict) else {}


def set_label(nexi: Nexi, run_id: str, change: Mapping[str, Any] | None) -> dict[str, Any]:
    """Change the label of a run, or remove it. One caller at a time. Raises StoreError."""
    labels, place = read_labels(nexi), nexi.config.personal_dir / "state" / LABELS
    before = labels.pop(run_id, {})
    label = {name: value for name, value in {**before, **change}.items() if value} if change is not None else {}
    if label:
        labels[run_id] = label
    if label or place.exists():
        write_json_object(place, labels, "the label could not be kept")
    return label
