"""What a reader is shown of the passages that a judge named: the sentences that say it, not their neighbours."""

from __future__ import annotations

from nexi.checking.answer import check_answer
from nexi.checking.evidence import EvidencePassage
from nexi.checking.judge import Judgement
from nexi.checking.pages import prepare
from nexi.checking.review import STATES_NOTHING, _narrow_span, build_cases, is_rejected, judge_claims
from nexi.types import Verdict
from tests.checking.test_judge import FixedJudge

PAGE = prepare(
    "# Reset\n\n"
    "- [The soft reset](http://git.test/soft)\n- [The hard reset](http://git.test/hard)\n\n"
    "Submodules may be reset too, with an option of their own. The tip of the branch is kept elsewhere first. "
    "A soft reset leaves the index alone. Files are left as they are. "
    "A hard reset discards every change to the files that are tracked. Nothing brings such a change back."
)
WHOLE = EvidencePassage(1, 1, 0, len(PAGE.text), PAGE.text)


def shown(sentence: str, *passages: EvidencePassage) -> str:
    start, end = _narrow_span(sentence, passages or (WHOLE,), PAGE)
    return PAGE.text[start:end]


def test_only_the_sentence_that_says_it_is_shown() -> None:
    assert shown("With hard, tracked files lose their changes.") == (
        "A hard reset discards every change to the files that are tracked."
    )


def test_a_second_sentence_is_shown_where_it_says_the_rest() -> None:
    assert shown("A soft reset leaves both the index and the files as they are.") == (
        "A soft reset leaves the index alone. Files are left as they are."
    )


def test_a_heading_or_a_line_of_links_is_never_what_says_it() -> None:
    assert shown("There is a soft reset.") == "A soft reset leaves the index alone."


def test_the_best_of_several_passages_is_taken() -> None:
    cut = PAGE.text.index("A soft reset")
    first, second = EvidencePassage(1, 1, 0, cut, PAGE.text[:cut]), EvidencePassage(2, 1, cut, len(PAGE.text), PAGE.text[cut:])
    assert shown("Nothing brings it back.", first, second) == "Nothing brings such a change back."


def test_a_sentence_without_a_word_of_the_passage_shows_the_beginning_of_it() -> None:
    assert shown("Zebras graze.").startswith("# Reset")


def test_a_judge_reads_the_cells_of_a_row_with_the_names_of_their_columns() -> None:
    rows = "| *Dawn* | $5 million | $44 million [3] |\n| *Dusk* | | $9 million [3] |"
    text = f"Costs:\n\n| film | budget | gross |\n|---|---|---|\n{rows}"
    claims = check_answer(text, {}, "What did they cost?").claims
    assert [case.text for case in build_cases(claims, "", text)] == [
        "film: Dawn | budget: $5 million | gross: $44 million",
        "film: Dusk | gross: $9 million",
    ]


async def test_a_sentence_that_states_nothing_to_the_judge_is_not_rejected_for_its_words() -> None:
    page = prepare("The dam was finished in 1971 and holds 20 million tons of water.")
    [claim] = check_answer("The dam was finished in 1984 [1].", {1: page}, "When was the dam finished?").claims
    assert claim.verdict is Verdict.CONTRADICTED
    judge = FixedJudge(Judgement("nothing"))
    claims, _ = await judge_claims([claim], "When was the dam finished?", {1: page}, judge)
    assert [(claim.verdict, claim.reason, is_rejected(claim)) for claim in claims] == [
        (Verdict.NOT_CONFIRMED, STATES_NOTHING, False)
    ]
