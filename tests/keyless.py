"""Ten questions of different kinds, the words that answer each, and the pages that have them."""

from __future__ import annotations


def page(url: str, title: str, *paragraphs: str) -> dict[str, str]:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    return {
        "url": f"http://{url}",
        "title": title,
        "html": f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>{body}</main></body></html>",
    }


PAGES = [
    page("moon.test/facts", "The Moon", "The Moon is 384,400 km from Earth on average.", "It has almost no air."),
    page("porto.test/lighthouse", "Lighthouse of Alder", "The lighthouse of Alder stands on Gull Rock, north of the harbour."),
    page(
        "journal.test/salt", "Salt and sleep", "In the paper of 2020, less salt let people sleep 40 minutes longer each night."
    ),
    page("health.test/zolamin", "Zolamin", "The most common side effects of zolamin are headache and a dry mouth."),
    page("trials.test/quindol", "Trial of quindol", "The clinical trial of quindol for asthma enrolled 212 patients."),
    page("code.test/widgets", "widgets error", "The error WidgetLockedError means that another process holds the lock."),
    page("pkg.test/tidelib", "tidelib", "The Python package tidelib needs Python 3.11 or newer.", "It computes tides."),
    page("news.test/bridge", "Bridge opens", "The new bridge of Elmhaven opened in March 2026, the mayor said."),
    page("books.test/harbour", "The Grey Harbour", "The novel The Grey Harbour was written by Ines Vale in 1931."),
    page("lexikon.test/elm", "Elmhafen", "Elmhafen hat 48.200 Einwohner und liegt an der Mündung der Elm."),
]
QUESTIONS = {
    "a fact": ("How far is the Moon from Earth on average?", "384,400 km"),
    "a place": ("Where is the lighthouse of Alder?", "Gull Rock"),
    "a paper": ("How much longer did people sleep with less salt in the paper of 2020?", "40 minutes"),
    "medicine": ("What are the side effects of zolamin?", "headache"),
    "a trial": ("How many patients did the clinical trial of quindol for asthma enroll?", "212 patients"),
    "programming": ("What does the error WidgetLockedError mean?", "another process holds the lock"),
    "a package": ("Which version of Python does the Python package tidelib need?", "3.11"),
    "news": ("When did the new bridge of Elmhaven open?", "March 2026"),
    "a book": ("Who wrote the novel The Grey Harbour?", "Ines Vale"),
    "another language": ("Wie viele Einwohner hat Elmhafen?", "48.200"),
}
