"""A page for a browser that is not let in: its head, and the headers it is sent with. Above are `guests` and `login`."""

from __future__ import annotations

__all__ = ["PAGE_HEAD", "SAFE"]

SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'",
}
PAGE_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>nexi</title>
<link rel="stylesheet" href="/static/style.css">
"""
