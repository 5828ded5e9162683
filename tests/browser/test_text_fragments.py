"""Links to evidence, opened in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nexi.checking.links import link_to
from nexi.formats import extract
from tests.browser.scene import Watched

Look = Callable[..., Watched]

TALL = '<p style="height:3000px">Nothing of interest stands here, the bridge excepted.</p>'
BODY = f"""<html><head><title>Bridge</title></head><body><h1>The Forth Bridge</h1>{TALL}
<p>The <b>Forth&nbsp;Bridge</b> is a <a href="/c">well-known</a>, 2,467-metre crossing &amp; landmark.</p>{TALL}
<p>The bridge was opened on 4&nbsp;March 1890 by the Duke of Rothesay, the later King Edward&nbsp;VII<sup>[1]</sup>, who
drove home the last rivet of six and a half million<i>s</i>.</p>{TALL}
<table><tr><th>Part</th><th>Length</th></tr><tr><td>Main span</td><td>521 m</td></tr></table>{TALL}
</body></html>"""


class Bridge(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(BODY.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bridge)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("beginning", "end", "lowest"),
    [
        ("The **Forth", "landmark", 2500),  # a quote through bold, a link, a dash, a comma and an ampersand
        ("The bridge was opened", "million", 5500),  # a long one, by its beginning and its end
    ],
)
def test_the_browser_finds_the_evidence(site: str, look: Look, beginning: str, end: str, lowest: int) -> None:
    text = extract(BODY.encode(), "text/html", site).text
    start = text.index(beginning)
    link = link_to(site, text, start, text.index(end, start) + len(end), "text/html")
    page = look(site).page
    page.goto(link)
    page.wait_for_function("() => scrollY > 0")  # after the page has loaded, in its own time
    assert lowest < page.evaluate("() => scrollY") < lowest + 1500


def test_without_a_fragment_the_page_opens_at_its_top(site: str, look: Look) -> None:
    page = look(site).page
    page.goto(site)
    assert page.evaluate("() => scrollY") == 0
