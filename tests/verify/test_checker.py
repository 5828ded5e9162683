"""What a checker lets out, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from nexi.types import Claim, JudgeFigure, PairScore, Verdict
from nexi.verify import FailedClaim
from nexi.verify.judging import JudgedClaims, apply_scores
from tests.verify.shelf import Desk

FIGURE = JudgeFigure("judge", 0.9, 60)
TRUE = "The Eiffel Tower is 330 metres tall [1]."
LIE = "The Tacoma bridge collapsed in March 1951 [2]."
REWRITTEN = "The Tacoma bridge collapsed in November 1940 [2]."


class Model:
    """Mends in the way it was told, and remembers what it was asked."""

    def __init__(self, *sentences: str) -> None:
        self.sentences = sentences
        self.asked: list[list[str]] = []

    async def __call__(self, failed: Sequence[FailedClaim]) -> dict[int, str]:
        self.asked.append([one.claim.text for one in failed])
        return dict(enumerate(self.sentences))


async def test_a_true_answer_passes_untouched_and_says_so() -> None:
    desk = Desk()
    text = f"{TRUE} It was completed in 1889 [1].\n\n- The Loire flows into the Atlantic Ocean [3].\n"
    review = await desk.review(text)
    assert desk.text == text.strip()
    assert review.proof.figures() == "3 of 3 sentences found in the cited pages"
    assert (review.marked, review.dropped, review.recited, review.corrected, review.asked) == ((), (), 0, 0, False)


async def test_places_of_claims_are_places_in_the_text() -> None:
    desk = Desk(rewrites=False)
    review = await desk.review(f"\n\n{LIE} {TRUE}\n\n- The Loire flows into the Atlantic Ocean [3].\n{LIE}")
    assert [desk.text[c.start : c.end] for c in review.proof.claims] == [c.text for c in review.proof.claims]
    assert [c.index for c in review.proof.claims] == list(range(len(review.proof.claims)))
    assert [c.text for c in review.proof.claims] == [LIE, TRUE, "- The Loire flows into the Atlantic Ocean [3].", LIE]
    assert review.marked == (0, 3)


async def test_a_failed_sentence_holds_back_all_that_follows_until_the_end() -> None:
    desk = Desk()
    await desk.write(f"{TRUE} {LIE} The Loire flows into the Atlantic Ocean [3]. ")
    await desk.checker.drain()
    assert desk.released == [TRUE]
    model = Model(REWRITTEN)
    review = await desk.checker.finish(model)
    assert desk.text == f"{TRUE} {REWRITTEN} The Loire flows into the Atlantic Ocean [3]."
    assert "".join(desk.released) == desk.text
    assert (model.asked, review.corrected, review.asked, review.marked) == ([[LIE]], 1, True, ())


async def test_all_that_failed_is_given_back_together_and_once() -> None:
    desk = Desk()
    model = Model("Still wrong [1].", "")
    review = await desk.review(f"{LIE} {TRUE} The Loire is made of milk [3].", model)
    again = await desk.checker.finish(model)
    assert model.asked == [[LIE, "The Loire is made of milk [3]."]]
    assert desk.text == f"{LIE} [unverified] {TRUE}"
    assert [c.text for c in review.dropped] == ["The Loire is made of milk [3]."]
    assert again.proof == review.proof


async def test_what_fails_is_marked_or_dropped() -> None:
    lax, strict = Desk(rewrites=False), Desk(rewrites=False, strict=True)
    await lax.review(f"{TRUE} {LIE} {TRUE}")
    review = await strict.review(f"{TRUE} {LIE} {TRUE}")
    assert lax.text == f"{TRUE} {LIE} [unverified] {TRUE}"
    assert strict.text == f"{TRUE} {TRUE}"
    assert ([c.text for c in review.dropped], review.proof.found) == ([LIE], 2)


async def test_where_no_model_rewrites_nothing_is_held() -> None:
    desk = Desk(rewrites=False)
    await desk.write(f"{LIE} {TRUE} And more")
    await desk.checker.drain()
    assert desk.text.startswith(f"{LIE} [unverified] {TRUE}")


async def test_lines_of_lists_and_tables_go_whole() -> None:
    desk = Desk(rewrites=False, strict=True)
    text = f"Facts:\n\n- {TRUE}\n- {LIE}\n\n| what | when |\n|---|---|\n| {LIE} | 7 |\n"
    await desk.review(text)
    assert desk.text == f"Facts:\n\n- {TRUE}\n\n| what | when |\n|---|---|"


async def test_a_marked_row_stays_a_row() -> None:
    desk = Desk(rewrites=False)
    await desk.review("| The tower is made of 900 kg of cheese [1] |\n| more |\n")
    assert desk.text.split("\n")[0] == "| The tower is made of 900 kg of cheese [1] [unverified] |"


async def test_a_wrong_number_is_put_right_when_one_other_source_supports_the_sentence() -> None:
    desk = Desk()
    review = await desk.review("The Loire flows into the Atlantic Ocean [2].")
    assert desk.text == "The Loire flows into the Atlantic Ocean [3]."
    assert (review.recited, review.proof.found, review.marked) == (1, 1, ())


async def test_a_wrong_number_is_not_guessed_between_two_sources() -> None:
    copies = {f"https://{name}.example/": f"{name}. The Loire flows into the Atlantic Ocean." for name in ("a", "b")}
    desk = Desk({**copies, "https://c.example/": "The sky is blue."}, rewrites=False)
    await desk.review("The Loire flows into the Atlantic Ocean [3].")
    assert desk.text == "The Loire flows into the Atlantic Ocean [3]. [unverified]"


async def test_copies_of_one_page_are_one_source() -> None:
    text = "The Loire flows into the Atlantic Ocean."
    desk = Desk({"https://a.example/": "The sky is blue.", "https://b.example/": text, "https://c.example/": text})
    await desk.review("The Loire flows into the Atlantic Ocean [1].")
    assert desk.text == "The Loire flows into the Atlantic Ocean [2]."


async def test_a_sentence_without_a_citation_gets_the_source_that_supports_it() -> None:
    desk = Desk()
    review = await desk.review("The Loire flows into the Atlantic Ocean.")
    assert (desk.text, review.recited) == ("The Loire flows into the Atlantic Ocean [3].", 1)


async def test_a_citation_that_adds_nothing_is_taken_out() -> None:
    desk = Desk()
    await desk.review("The Loire flows into the Atlantic Ocean [2][3].")
    assert desk.text == "The Loire flows into the Atlantic Ocean [3]."


async def test_a_page_without_a_stored_text_is_a_gap_that_no_model_is_asked_to_rewrite() -> None:
    desk = Desk()
    source = desk.session.book.number_for("https://gone.example/", digest="0" * 64)
    model = Model(TRUE)
    review = await desk.review(f"Bananas are blue [{source.number}].", model)
    assert model.asked == []
    assert desk.text == f"Bananas are blue [{source.number}]. [unverified]"
    assert [c.verdict for c in review.proof.claims] == [Verdict.UNCHECKED]


async def test_code_is_never_checked_nor_changed() -> None:
    desk = Desk()
    text = "```python\nx = a[2]  # bridges collapsed in 1951.\n```"
    review = await desk.review(text)
    assert (desk.text, review.proof.claims) == (text, ())


async def test_a_mark_the_model_wrote_itself_means_nothing() -> None:
    desk = Desk()
    await desk.review(f"{TRUE} [unverified] {TRUE}")
    assert desk.text == f"{TRUE} {TRUE}"


async def test_a_judge_lowers_and_holds_everything_until_it_has_spoken() -> None:
    seen: list[list[str]] = []

    async def judge(claims: Sequence[Claim]) -> JudgedClaims:
        seen.append([claim.text for claim in claims])
        return JudgedClaims((claims[0], apply_scores(claims[1], [PairScore(0.1, reason="no", judge=FIGURE)]), *claims[2:]))

    desk = Desk(judge=judge)
    await desk.write(f"{TRUE} The Loire flows into the Atlantic Ocean [3]. {LIE}")
    assert desk.released == []
    review = await desk.checker.finish()
    assert seen == [[TRUE, "The Loire flows into the Atlantic Ocean [3].", LIE]]
    assert desk.text == f"{TRUE} The Loire flows into the Atlantic Ocean [3]. [unverified] {LIE} [unverified]"
    assert review.proof.claims[1].evidence[0].reason == "judge says that the passage does not support it: no"


async def test_a_cancelled_check_loses_nothing() -> None:
    desk = Desk(rewrites=False)
    for stretch in (f"{TRUE} ", f"{LIE} ", TRUE):
        desk.checker.add_stretch(stretch)
    task = asyncio.create_task(desk.checker.drain())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    review = await desk.checker.finish()
    assert desk.text == f"{TRUE} {LIE} [unverified] {TRUE}"
    assert len(review.proof.claims) == 3


async def test_a_writer_who_only_quotes_may_cut_a_date_in_two() -> None:
    page = {"https://a.example/": "He wrote on Dec. 22, 1877 to the French Academy of Sciences in Paris. Nothing more."}
    cut = "… 22, 1877 to the French Academy of Sciences in Paris. [1]"
    quoting = Desk(page, rewrites=False)
    review = await quoting.review(cut)
    assert (quoting.text, review.proof.figures()) == (cut, "1 of 1 sentence found in the cited pages")


async def test_the_head_of_a_table_is_no_sentence_and_gets_no_citation() -> None:
    desk = Desk(rewrites=False)
    table = "| river that flows | into the Atlantic Ocean |\n|---|---|\n| Loire | The Loire flows into the Atlantic Ocean |\n"
    head, _, rest = table.partition("\n")
    await desk.write(f"{head}\n")
    await desk.checker.drain()
    assert desk.text == ""
    review = await desk.review(rest)
    assert desk.text.split("\n")[0] == head
    assert [claim.text for claim in review.proof.checked] == [desk.text.split("\n")[2]]


async def test_a_row_that_heads_nothing_is_checked_as_any_sentence() -> None:
    desk = Desk(rewrites=False)
    await desk.review(f"| {LIE} |\n")
    assert desk.text == f"| {LIE} [unverified] |"


LIES = (
    "## Napoleon built the Eiffel Tower",
    "**Napoleon built it in 1742**",
    "I think that Napoleon built it.",
    "Who? Napoleon.",
)
LIES += (
    "```\nNapoleon built it in 1742.\n```",
    "Please note that Napoleon built it.",
    "Builder: Napoleon",
    "Napoleon.",
    "1742:",
)
LIES += ("Who? Napoleon.", "Builder: Napoleon")
LIES += ("[^1]: Napoleon built it", "The evidence above shows that Napoleon built it.", "Did you know that Napoleon built it?")


@pytest.mark.parametrize("lie", LIES)
async def test_no_form_of_a_lie_gets_past_a_strict_check(lie: str) -> None:
    desk = Desk(strict=True, rewrites=False, question="How tall is the Eiffel Tower?")
    await desk.review(f"The Eiffel Tower is 330 metres tall [1].\n\n{lie}\n\nIt was completed in 1889 [1].")
    assert "Napoleon" not in desk.text
    assert "1742" not in desk.text
    assert "330 metres" in desk.text


@pytest.mark.parametrize("title", ["## Eiffel Tower", "## The Eiffel Tower in 1889", "**Key points**", "Here is a summary:"])
async def test_a_heading_whose_names_and_values_are_on_the_pages_stays(title: str) -> None:
    desk = Desk(strict=True, rewrites=False, question="How tall is it?")
    await desk.review(f"{title}\n\nThe Eiffel Tower is 330 metres tall [1].")
    assert desk.text == f"{title}\n\nThe Eiffel Tower is 330 metres tall [1]."
