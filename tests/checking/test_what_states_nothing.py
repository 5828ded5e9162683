"""Titles, lead-ins, transitions, heads of tables and the user's own question state nothing; the clause behind them may."""

from __future__ import annotations

from nexi.checking.pages import parse_text
from nexi.checking.rules import check_answer
from nexi.checking.sentences import has_verb, without_markers

QUESTION = "Which engine holds more data?"
ANSWER = """# Choosing an engine

Which engine holds more data?

The points that matter are:

| engine | limit |
|---|---|
| Alder | 40 terabytes |

**In brief**

In short, Brandt holds 90 terabytes.
"""


def test_only_what_states_something_is_counted() -> None:
    proof = check_answer(ANSWER, {}, QUESTION)
    claims = [claim.text.strip() for claim in proof.checked]
    assert claims == ["| Alder | 40 terabytes |", "In short, Brandt holds 90 terabytes."]


def test_the_clause_behind_a_transition_is_what_is_compared() -> None:
    assert without_markers("In short, Brandt holds 90 terabytes [1].") == "Brandt holds 90 terabytes."


def test_a_title_in_which_a_plural_does_something_reads_like_a_sentence() -> None:
    titles = ("Trams run on peanut butter", "Trams and buses", "Costs for the city", "News coverage of the vote")
    assert [has_verb(parse_text(title)) for title in titles] == [True, False, False, False]
