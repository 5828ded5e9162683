"""What the browser's tests play with: a small web, a model that tells fixed answers, and a page that is watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from rig.held_model import HELD
from rig.research_script import Reply, ResearchScript

PATIENCE_MS = 180_000


def web_page(url: str, title: str, *paragraphs: str, head: str = "", lang: str = "en") -> dict[str, str]:
    body = "".join(f"<p>{p}</p>" for p in paragraphs)
    opening = f'<html lang="{lang}"><head><title>{title}</title>{head}</head>'
    return {"url": url, "title": title, "html": f"{opening}<body><main><h1>{title}</h1>{body}</main></body></html>"}


FAR = "The Moon is 384,400 km from Earth on average."
ORBIT = "It orbits Earth in 27.3 days."
AIR = "It has almost no air and many craters, and its far side was first photographed in 1959."
PAGES = [
    web_page("http://moon.test/facts", "Moon facts", f"{FAR} {ORBIT}", AIR),
    web_page(
        "http://mars.test/moons",
        "The moons of Mars",
        "Mars has two moons, Phobos and Deimos. They were found by Asaph Hall in 1877.",
        "Phobos is about 22 km wide and Deimos about 12 km. Both keep the same face to the planet.",
    ),
    web_page(
        "http://tides.test/why",
        "Why there are tides",
        "The pull of the Moon raises two tides a day in most places. The Sun raises tides of about half that height.",
    ),
    web_page(
        "http://qamar.test/masafa",
        "القمر",
        "يبعد القمر عن الأرض 384400 كيلومتر في المتوسط. ويدور حول الأرض في 27.3 يوما.",
        lang="ar",
    ),
]
QUESTION = "How far is the Moon from Earth, and how long is its orbit?"
# A sentence is shown when the next has begun.
ANSWER = f"The Moon is 384,400 km from Earth on average [1]. It orbits{HELD} Earth in 27.3 days [1]."
WHOLE = ANSWER.replace(HELD, "")
ARABIC = "كم يبعد القمر عن الأرض؟"
ARABIC_ANSWER = "يبعد القمر عن الأرض 384400 كيلومتر في المتوسط [1]."
DEEP = "How far is the Moon from Earth and which moons does Mars have?"


class Telling(ResearchScript):
    """Searches once, reads once, and tells the answer that belongs to the question; deep questions are worked on by rules."""

    def __init__(self, answers: dict[str, str] | None = None) -> None:
        super().__init__(rounds=1, read=2)
        self.answers = {QUESTION: ANSWER, ARABIC: ARABIC_ANSWER, **(answers or {})}

    def agent(self, messages: Sequence[dict[str, Any]], question: str) -> Reply:
        asked = [m.get("content") for m in messages if m.get("role") == "user"]
        question = next((q for q in reversed(asked) if q in self.answers), question)
        text, calls = super().agent(_since(messages, question), question)
        if calls and calls[0][0] == "final_answer" and question in self.answers:
            return None, [("final_answer", {"answer": self.answers[question]})]
        return text, calls


def _since(messages: Sequence[dict[str, Any]], question: str) -> list[dict[str, Any]]:
    """The conversation from the last time this was asked."""
    places = [i for i, m in enumerate(messages) if m.get("role") == "user" and m.get("content") == question]
    return list(messages[places[-1] :] if places else messages)


class Watched:
    """A page of the browser, and everything about it that should not be: errors, dialogs, requests that leave."""

    def __init__(self, page: Any, base: str) -> None:
        self.page, self.base = page, base
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.dialogs: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error(`policy ${e.violatedDirective} ${e.blockedURI}`))"
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def _console(self, said: Any) -> None:
        """An error, and what it is about; networks that change, as with each container, break off what is under way."""
        if said.type == "error" and "net::ERR_NETWORK_CHANGED" not in said.text:
            self.errors.append(f"{said.text} {said.location.get('url', '')}".strip())

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob", "about") and not request.url.startswith(self.base + "/"):
            self.outside.append(request.url)

    @property
    def trouble(self) -> list[str]:
        return [*self.errors, *self.dialogs, *self.outside]

    def open(self, path: str = "/") -> Any:
        self.page.goto(self.base + path)
        return self.page

    def ask(self, question: str = QUESTION) -> None:
        self.page.fill("#question", question)
        self.page.press("#question", "Enter")
        self.page.wait_for_url("**/runs/*")

    def sees(self, text: str, where: str = "#answer") -> None:
        """Wait until the text stands there."""
        self.page.wait_for_function(
            "([where, text]) => [...document.querySelectorAll(where)].some((e) => e.innerText.includes(text))",
            arg=[where, text],
        )

    def finished(self) -> None:
        """Wait until the run has ended and what belongs to its end is shown."""
        self.page.wait_for_selector("#tools", state="visible")
        self.page.wait_for_selector("#stop", state="hidden")
