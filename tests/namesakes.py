"""Two people of one name, and a question about them that does not say which one is meant."""

from __future__ import annotations

QUESTION = "Describe the career and the legacy of Michael Jordan."
READINGS = ("Michael Jordan (basketball)", "Michael Jordan (footballer)")
TEXTS = {
    "http://courts.test/jordan": (
        READINGS[0],
        "Michael Jordan played fifteen seasons of basketball and won six championships with the Chicago Bulls.",
        "Jordan joined the Chicago Bulls in 1984, and his career ended in 2003 with the Washington Wizards.",
        "The legacy of Jordan is that basketball became popular around the world.",
    ),
    "http://pitches.test/jordan": (
        READINGS[1],
        "Michael Jordan is a retired English footballer who played as a goalkeeper.",
        "Jordan began his career at Arsenal and made one appearance in the League Cup.",
        "The legacy of Jordan in Farnborough is a record of saves in the season of 2010.",
    ),
}
MARKDOWN = {
    url: f"# {title}\n\n{lead}\n\n## Career\n\n{one}\n\n## Legacy\n\n{two}\n" for url, (title, lead, one, two) in TEXTS.items()
}
PAGES = [
    {
        "url": url,
        "title": title,
        "html": f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>{lead}</p><h2>Career</h2><p>{one}</p>"
        f"<h2>Legacy</h2><p>{two}</p></main></body></html>",
    }
    for url, (title, lead, one, two) in TEXTS.items()
]
