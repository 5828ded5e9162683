"""GitHub's plain endpoints: a file is read as it is, not as the program around it. Pure; knows URLs only.

Issues, pull requests and discussions come as HTML that holds their text, so they are left as they are.
"""

from __future__ import annotations

from nexi.urls import Url

RAW = "https://raw.githubusercontent.com"


def plain_form(url: Url) -> str:
    """The URL of the file itself for a page that shows a file, else ""."""
    parts = [part for part in url.path.split("/") if part]
    if url.host in ("github.com", "www.github.com") and len(parts) > 4 and parts[2] in ("blob", "raw", "blame"):
        owner, project, _, *rest = parts
        return f"{RAW}/{owner}/{project}/{'/'.join(rest)}"
    if url.host == "gist.github.com" and len(parts) == 2:
        return f"https://gist.githubusercontent.com/{parts[0]}/{parts[1]}/raw"
    return ""
