"""The same three pages as text for the fakes and as HTML for the loopback web."""

from __future__ import annotations

ADDRESSES = {name: f"http://{name}.test/facts" for name in ("moon", "mars", "venus")}
FACTS = {
    "moon": ("Moon facts", "The Moon is 384,400 km from Earth on average, and planet watchers like it."),
    "mars": ("Mars facts", "Mars is a planet with two moons that are called Phobos and Deimos."),
    "venus": ("Venus facts", "Venus is a hot planet that has never had a companion of its own."),
}
TEXTS = {ADDRESSES[name]: f"# {title}\n\n{fact}" for name, (title, fact) in FACTS.items()}
HTML = [
    {
        "url": ADDRESSES[name],
        "title": title,
        "html": f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>{fact}</p></main></body></html>",
    }
    for name, (title, fact) in FACTS.items()
]
