"""The extraction eval counts what survives, and holds whole runs and samples to their floors."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evals.extraction import __main__ as command
from evals.extraction import corpus, scoring, weights

FLOORS = json.loads(command.FLOORS.read_text(encoding="utf-8"))
KEPT = scoring.Structure(dict.fromkeys(scoring.KINDS, 10), dict.fromkeys(scoring.KINDS, 10), 1.0)


def row(*f1: float, structure: scoring.Structure = KEPT, kept: int = 100, times: float = 2.0) -> command.Row:
    words = scoring.Words()
    for value in f1:
        for kind in ("all", *command.TYPES):
            words.rows[kind].append((value, value, value))
    return command.Row("nexi", words, structure, {"dev": scoring.Survival(kept, 100, 10.0)}, times)


def test_words_are_compared_as_multisets_without_targets_of_links() -> None:
    got, want = scoring.counted("A [link](https://x.test/y) b b"), scoring.counted("a link b c")
    assert (got, scoring.compared(got, want)) == (Counter(a=1, link=1, b=2), (0.75, 0.75, 0.75))
    assert scoring.compared(Counter(), want) == (0.0, 0.0, 0.0)


def test_extractors_take_turns_on_every_page_and_each_is_first_as_often() -> None:
    calls: list[str] = []

    def extractor(name: str, text: str) -> scoring.Extractor:
        def extract(html: str, url: str) -> str:
            calls.append(f"{name} {url}")
            return text

        return extract

    pages = [corpus.Page("", url, "article", "one two") for url in ("u", "v")]
    right, wrong = scoring.words_in_turn([extractor("a", "one two"), extractor("b", "three")], pages)
    assert calls == ["a u", "b u", "b v", "a v"]
    assert (right.mean("article"), wrong.mean()) == (1.0, 0.0)


def test_what_the_eval_and_its_learner_import_is_declared() -> None:
    """Names of modules and of packages are the same here, but for the underscore."""
    declared = tomllib.loads((command.RESULTS.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    needs = [*declared["project"]["dependencies"], *declared["dependency-groups"]["dev"]]
    known = {re.split(r"[^\w-]", need)[0].lower().replace("-", "_") for need in needs}
    imported = {
        name.partition(".")[0]
        for file in command.FLOORS.parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in getattr(node, "names", ())])
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported - set(sys.stdlib_module_names) - {"evals", "nexi", "rig"} <= known
    assert "numpy" in imported


def test_structure_is_what_the_main_part_has_and_the_text_keeps() -> None:
    html = (
        "<body><div id=apicontent><h1>Head</h1><pre>a = 1</pre><table><tr><td>x</td><td>is_dir</td></tr></table>"
        "<ul><li>one two three</li></ul><a href='b.html'>b</a></div></body>"
    )
    text = "# Head\n\n```\na = 1\n```\n\n| x | `is_dir` |\n\n- one two three\n\n[b](https://x.test/b.html)"
    whole = scoring.structure(lambda html, url: text, {"node_x": html})
    assert (whole.kept, whole.asked) == (Counter(scoring.KINDS), Counter(scoring.KINDS))
    none = scoring.structure(lambda html, url: "Head a = 1", {"node_x": html})
    assert (none.kept.total() if isinstance(none.kept, Counter) else -1, none.words < 1) == (0, True)


def test_an_answer_survives_where_the_text_of_its_pages_has_it() -> None:
    questions = [corpus.Question(("by Night",), ("u",)), corpus.Question(("no",), ("u",)), corpus.Question(("absent",), ("u",))]
    pages = {"u": "<p>no: it hunts <b>by</b> night</p>"}
    assert scoring.survival(lambda html, url: "It hunts by night.", questions, pages) == scoring.Survival(1, 1, 4.5)
    assert scoring.survival(lambda html, url: "It sleeps.", questions, pages).kept == 0


def test_a_run_below_a_floor_is_named() -> None:
    assert command.below(row(0.99, 0.99), FLOORS, whole=True) == []
    lost = scoring.Structure({**KEPT.kept, "rows": 9}, KEPT.asked, 1.0)
    found = command.below(row(0.99, structure=lost, kept=98, times=9.0), FLOORS, whole=True)
    assert found == [
        f"rows of documentation 0.900 < {FLOORS['rows']}",
        f"answers of dev 98/100 < {FLOORS['answers']}",
        f"CPU 9.0x > {FLOORS['cpu']}x",
    ]
    assert command.below(row(0.1), FLOORS, whole=True)[0] == f"all 0.100 < {FLOORS['all']:.3f}"


def test_a_sample_may_fall_as_far_as_chance_takes_it() -> None:
    assert command.below(row(0.5, 1.0), FLOORS, whole=False) == []
    assert command.below(row(*[0.5] * 50), FLOORS, whole=False) == [f"all 0.500 < {FLOORS['all']:.3f}"]


def test_the_table_is_saved_between_its_marks(tmp_path: Path) -> None:
    file = tmp_path / "extraction.md"
    file.write_text("Before\n<!-- table -->\nold\n<!-- end -->\nAfter\n", encoding="utf-8")
    command.save("| new |", file)
    assert file.read_text(encoding="utf-8") == "Before\n<!-- table -->\n| new |\n<!-- end -->\nAfter\n"


def test_without_the_data_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["extraction", "--data", str(tmp_path)])
    assert command.main() == 0
    assert capsys.readouterr().out.startswith(f"extraction: skipped, {corpus.ANNOTATED} and ")


def test_the_learner_finds_the_lowest_point_of_a_convex_function() -> None:
    scales, lowest = np.array([1.0, 30.0, 0.5]), np.array([3.0, -2.0, 0.25])

    def cost(place: weights.Vector) -> tuple[float, weights.Vector]:
        return float(scales @ (place - lowest) ** 2), 2 * scales * (place - lowest)

    assert np.allclose(weights.minimize(cost, 3), lowest, atol=1e-2)


def test_the_pages_of_one_site_are_in_one_fold() -> None:
    pages = [corpus.Page("", f"https://{host}/{n}", "article", "") for n, host in enumerate(("a.news.test", "news.test") * 2)]
    assert len({weights.fold_of(page, 5) for page in pages}) == 1


def test_weights_are_learned_for_names_that_stand_on_enough_pages() -> None:
    page = [({"bias", "t:p"}, 1.0, 0.5), ({"bias", "t:li"}, 0.0, 0.5)]
    rare = [({"bias", "t:p", "rare"}, 1.0, 1.0)]
    found = weights.learned([*[page] * weights.SEEN_ON * 20, rare])
    assert (found["t:p"] > 0, found["t:li"] < 0, "rare" in found) == (True, True, False)
