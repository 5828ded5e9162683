"""The built-in model through its port: it searches, reads, quotes with numbers, and says so when it cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from nexi.answers.answered import NOTHING_FOUND
from nexi.errors import LLMError
from nexi.llm.extractive import composition
from nexi.llm.extractive._evidence import SentenceRanking
from nexi.llm.extractive._weights import find_similarity
from nexi.llm.extractive.composition import ExtractiveAnswer, compose_answer
from nexi.llm.extractive.model import NOTHING_READ, Extractive
from nexi.llm.extractive.questions import read_question, what_is_wanted
from nexi.types import Hit, Message, PageView, Reply, SearchOutcome, ToolCall, ToolResult, ToolSpec, Usage

TOOLS = tuple(ToolSpec(name, "", {}) for name in ("web_search", "web_get", "final_answer"))

OWL = PageView(
    "https://birds.example/owl",
    1,
    "Owl - Birds Online",
    "# Owl\n\nThe barn owl hunts voles at night. Dr. A. Weber described its hearing in 1952 in the town of Bern. "
    "An owl can turn its head by 270 degrees.\n\n## Nests\n\nBarn owls nest in old barns and church towers.",
)
WREN = PageView("https://birds.example/wren", 2, "Wren", "# Wren\n\nThe wren is a small bird. It sings loudly by day.")


def searched(question: str, *hits: Hit, call_id: str = "s") -> list[Message]:
    outcome = SearchOutcome(question, hits)
    return [*called("web_search", {"queries": [question]}, call_id), answered(call_id, (outcome,))]


def read(*pages: PageView, call_id: str = "r") -> list[Message]:
    return [*called("web_get", {"urls": [p.url for p in pages]}, call_id), answered(call_id, pages)]


def called(name: str, arguments: object, call_id: str) -> list[Message]:
    return [Message("assistant", "", (ToolCall(call_id, name, json.dumps(arguments)),))]


def answered(call_id: str, value: object) -> Message:
    return Message("tool", "", tool_call_id=call_id, result=ToolResult(value, ""))


async def ask(messages: Sequence[Message], tools: Sequence[ToolSpec] = TOOLS) -> Reply:
    return await Extractive().complete(messages, tools, max_tokens=500)


def arguments(reply: Reply) -> tuple[str, dict[str, object]]:
    (call,) = reply.tool_calls
    return call.name, json.loads(call.arguments)


async def final(question: str, *pages: PageView) -> str:
    name, given = arguments(await ask([Message("user", question), *searched(question, *hits(*pages)), *read(*pages)]))
    assert name == "final_answer"
    return str(given["answer"])


def hits(*pages: PageView) -> list[Hit]:
    return [Hit(p.url, p.title, p.text[:100]) for p in pages]


async def test_a_question_is_searched_for_first() -> None:
    reply = await ask([Message("system", "be brief"), Message("user", "When does the barn owl hunt?")])
    assert arguments(reply) == ("web_search", {"queries": ["When does the barn owl hunt?"]})
    assert (reply.usage, reply.finish, reply.text) == (Usage(0, 0, cost=0.0), "tool_calls", "")


async def test_a_choice_between_two_is_searched_for_with_each_of_them() -> None:
    reply = await ask([Message("user", "Who was born first, Ada Lovelace or Alan Turing?")])
    asked = ["Who was born first, Ada Lovelace or Alan Turing?", "Ada Lovelace", "Alan Turing"]
    assert arguments(reply) == ("web_search", {"queries": asked})


async def test_the_most_promising_hits_are_read_in_full() -> None:
    question = "When does the barn owl hunt?"
    noise = [Hit(f"https://noise.example/{n}", "Cars", "engines and wheels") for n in range(8)]
    owl = Hit(OWL.url, OWL.title, "the barn owl hunts at night")
    name, given = arguments(await ask([Message("user", question), *searched(question, *noise[:2], owl, *noise[2:])]))
    assert (name, given["get_full"], len(list(given["urls"]))) == ("web_get", True, 4)  # type: ignore[call-overload]
    assert OWL.url in given["urls"]  # type: ignore[operator]


async def test_a_researcher_reads_first_what_its_reading_model_finds_near_in_other_words() -> None:
    question = "How do I handle errors in Zorb?"
    hits = (Hit("https://a.example/", "Zorb", "Errors in Zorb"), Hit("https://b.example/", "Exceptions", "A try block fails"))
    outcome = SearchOutcome(question, hits)
    messages = [Message("user", question), *called("search", {"queries": [question]}, "s"), answered("s", (outcome,))]
    reader = Extractive(lambda _, texts: [0.95 if "Exceptions" in text else 0.7 for text in texts])
    read_first = []
    for reading in ("web_get", "scrape"):  # of an answer, and of a report
        tools = [ToolSpec(reading, "", {}), ToolSpec("search", "", {})]
        reply = await reader.complete(messages, tools, max_tokens=500)
        read_first.append(arguments(reply)[1]["urls"])
    assert read_first == [[hit.url for hit in hits], [hit.url for hit in reversed(hits)]]


async def test_pages_the_user_names_are_read_without_a_search() -> None:
    reply = await ask([Message("user", "What does https://birds.example/owl say about hearing?")])
    assert arguments(reply) == ("web_get", {"urls": ["https://birds.example/owl"], "get_full": True})


async def test_a_search_without_hits_is_tried_once_more_with_keywords() -> None:
    question = "When does the barn owl hunt?"
    first = [Message("user", question), *searched(question)]
    assert arguments(await ask(first)) == ("web_search", {"queries": ["barn owl hunt?".replace("?", "")]})
    second = await ask([*first, *searched("barn owl hunt", call_id="s2")])
    assert arguments(second) == ("final_answer", {"answer": NOTHING_READ})


async def test_the_answer_quotes_the_sentence_that_answers_with_its_number() -> None:
    answer = await final("When does the barn owl hunt?", OWL, WREN)
    assert answer.startswith("The barn owl hunts voles at night. [1]")
    assert len(re.sub(r"\[\d+\]", "", answer).split()) <= 60


async def test_initials_and_titles_do_not_end_a_sentence() -> None:
    answer = await final("Who described the hearing of the owl?", OWL)
    assert "Dr. A. Weber described its hearing in 1952 in the town of Bern. [1]" in answer


async def test_numbers_come_from_the_pages_and_not_from_their_order() -> None:
    moved = PageView(OWL.url, 7, OWL.title, OWL.text)
    assert set(re.findall(r"\[(\d+)\]", await final("When does the barn owl hunt?", moved))) == {"7"}


async def test_pages_that_say_nothing_of_it_give_an_honest_answer_without_a_number() -> None:
    question = "Which chemical element has symbol Zr?"
    so_far = [Message("user", question), *searched(question, *hits(WREN)), *read(WREN), *searched("Zr", call_id="s2")]
    assert arguments(await ask(so_far)) == ("final_answer", {"answer": NOTHING_FOUND})


async def test_where_no_page_answers_what_the_question_names_is_searched_for_and_read_once() -> None:
    question = "What is the main duty of the Brane Council?"
    so_far = [Message("user", question), *searched(question, *hits(WREN)), *read(WREN)]
    assert arguments(await ask(so_far)) == ("web_search", {"queries": ["Brane Council", "duty Brane Council"]})
    council = PageView("https://b.example/council", 3, "Brane", "The Brane Council has the duty to keep the bridges safe.")
    found = [SearchOutcome("Brane Council", tuple(hits(council))), SearchOutcome("duty Brane Council", ())]
    so_far += [*called("web_search", {"queries": ["Brane Council", "duty Brane Council"]}, "s2"), answered("s2", tuple(found))]
    assert arguments(await ask(so_far)) == ("web_get", {"urls": [council.url], "get_full": True})
    answer = arguments(await ask([*so_far, *read(council, call_id="r2")]))
    assert answer == ("final_answer", {"answer": "The Brane Council has the duty to keep the bridges safe. [3]"})
    still_nothing = [*so_far, *read(PageView("https://b.example/council", 3, "Brane", "It rains."), call_id="r2")]
    assert arguments(await ask(still_nothing))[0] == "final_answer"


async def test_pages_that_failed_are_not_quoted() -> None:
    failed = PageView("https://birds.example/owl", error="timeout: too slow")
    question = "When does the barn owl hunt?"
    reply = await ask([Message("user", question), *searched(question, *hits(OWL)), *read(failed)])
    assert arguments(reply) == ("final_answer", {"answer": NOTHING_READ})


async def test_which_came_first_is_said_before_the_two_pages_are_quoted() -> None:
    ada = PageView(
        "https://p.example/a", 1, "Ada Lovelace", "Ada Lovelace (10 December 1815 – 27 November 1852) wrote programs."
    )
    alan = PageView("https://p.example/b", 2, "Alan Turing", "Alan Turing (23 June 1912 – 7 June 1954) was a mathematician.")
    assert await final("Who was born first, Ada Lovelace or Alan Turing?", alan, ada) == (
        "Ada Lovelace. Ada Lovelace (10 December 1815 – 27 November 1852) wrote programs. [1] "
        "Alan Turing (23 June 1912 – 7 June 1954) was a mathematician. [2]"
    )
    assert (await final("Who lived longer, Ada Lovelace or Alan Turing?", alan, ada)).startswith("Alan Turing. ")


async def test_a_name_on_the_way_to_the_answer_is_searched_for() -> None:
    film = PageView("https://f.example/rain", 1, "Late Rain", "Late Rain is a 1961 film directed by Maria Oberholz in Graz.")
    question = "Where was the director of Late Rain born?"
    talk = [Message("user", question), *searched(question, *hits(film)), *read(film)]
    assert arguments(await ask(talk)) == ("web_search", {"queries": ["Maria Oberholz"]})
    person = PageView("https://f.example/maria", 2, "Maria Oberholz", "Maria Oberholz was born in Villach. She liked rain.")
    talk += searched("Maria Oberholz", *hits(person), call_id="s2")
    assert arguments(await ask(talk)) == ("web_get", {"urls": [person.url], "get_full": True})
    name, given = arguments(await ask([*talk, *read(person, call_id="r2")]))
    assert name == "final_answer"
    assert str(given["answer"]).startswith(
        "Late Rain is a 1961 film directed by Maria Oberholz in Graz. [1] Maria Oberholz was born in Villach. [2]"
    )


async def test_a_follow_up_is_searched_anew_and_may_quote_what_was_read_before() -> None:
    first = [Message("user", "When does the barn owl hunt?"), *searched("q", *hits(OWL)), *read(OWL)]
    talk = [*first, Message("assistant", "At night. [1]"), Message("user", "Where does it nest?")]
    assert arguments(await ask(talk))[0] == "web_search"
    talk += searched("nest", *hits(OWL, WREN), call_id="s2")
    assert arguments(await ask(talk)) == ("web_get", {"urls": [WREN.url], "get_full": True})
    name, given = arguments(await ask([*talk, *read(WREN, call_id="r2")]))
    assert name == "final_answer"
    assert "Barn owls nest in old barns and church towers. [1]" in str(given["answer"])


async def test_what_the_loop_says_after_a_result_is_not_taken_for_a_question() -> None:
    question = "When does the barn owl hunt?"
    nudged = [Message("user", question), *searched(question, *hits(OWL)), *read(OWL), Message("user", "Stop. Answer now.")]
    reply = await ask(nudged, ())
    assert (reply.text.startswith("The barn owl hunts voles at night. [1]"), reply.tool_calls) == (True, ())


async def test_pages_given_as_text_alone_are_read_as_any_model_reads_them() -> None:
    pages = json.dumps({"pages": [{"url": OWL.url, "content": f"[3] {OWL.url}\n---\n{OWL.text}"}]})
    talk = [Message("user", "When does the barn owl hunt?"), Message("user", f"Tool result:\n{pages}"), Message("user", "Now.")]
    assert (await ask(talk, ())).text.startswith("The barn owl hunts voles at night. [3]")


async def test_without_tools_a_page_is_cut_down_to_what_bears_on_the_question() -> None:
    prompt = "You extract from one web page.\n\nQuestion: When does the barn owl hunt?"
    reply = await Extractive().complete([Message("system", prompt), Message("user", OWL.text)], max_tokens=40)
    assert reply.text.splitlines()[0] == "The barn owl hunts voles at night."
    assert len(reply.text.split()) <= 24


async def test_a_summary_keeps_citation_numbers_beside_their_sentences() -> None:
    material = f"[4] {OWL.url}\n---\n{OWL.text}\n\n[9] {WREN.url}\n---\n{WREN.text}"
    prompt = f"Summarise.\n\nOriginal query: when do owl and wren sing or hunt\n\n---\n{material}\n---"
    lines = (await Extractive().complete([Message("user", prompt)], max_tokens=500)).text.splitlines()
    assert "The barn owl hunts voles at night. [4]" in lines
    assert "It sings loudly by day. [9]" in lines


async def test_a_pick_list_names_the_parts_that_share_most_with_the_question() -> None:
    schema = {"type": "object", "properties": {"pick": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}}}
    prompt = [Message("system", "Question: owl hearing"), Message("user", "[chunk 0]\ncars\n\n[chunk 1]\nthe owl's hearing")]
    reply = await Extractive().complete(prompt, max_tokens=50, schema=schema)
    assert json.loads(reply.text) == {"pick": [1]}


async def test_any_other_form_is_refused_with_what_to_do() -> None:
    schema = {"type": "object", "properties": {"verdict": {"type": "string"}}}
    with pytest.raises(LLMError) as caught:
        await Extractive().complete([Message("user", "judge")], max_tokens=50, schema=schema)
    assert (caught.value.code, bool(caught.value.fix)) == ("unsupported", True)


async def test_callbacks_hear_every_call_and_every_text() -> None:
    heard: list[object] = []
    await Extractive().complete(
        [Message("user", "When does the owl hunt?")],
        TOOLS,
        max_tokens=50,
        on_call=heard.append,
        on_arguments=lambda name, piece: heard.append((name, piece)),
    )
    queries = '{"queries": ["When does the owl hunt?"]}'
    assert heard == [("web_search", queries), ToolCall("extractive_1", "web_search", queries)]
    said: list[str] = []
    reply = await Extractive().complete([Message("user", "Owls hunt at night.")], max_tokens=50, on_text=said.append)
    assert said == [reply.text]


async def test_an_identifier_under_which_the_answer_stands_is_shown_with_it() -> None:
    text = (
        "`--soft`\n\nDoes not touch the index file, but resets the head.\n\n`--hard`\n\nResets the index and the working tree."
    )
    page = PageView("https://d.example/reset", 1, "git-reset", text)
    answer = await final("Which option of git reset does not touch the index file?", page)
    assert answer.startswith("`--soft`: Does not touch the index file, but resets the head. [1]")


async def test_it_says_what_it_is() -> None:
    assert Extractive().name == "extractive"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What happens when the lamp is lit?", "name"),
        ("When was the lamp lit?", "date"),
        ("In which year was the lamp lit?", "date"),
        ("How do I find out who lit the lamp?", ""),
        ("Who lit the lamp when it was dark?", "person"),
        ("How many lamps are there where she lives?", "number"),
        ("Which function lights the lamp?", "code"),
    ],
)
def test_the_first_question_word_decides_what_is_wanted(question: str, kind: str) -> None:
    assert what_is_wanted(question) == kind


async def test_on_pages_full_of_code_the_identifier_is_part_of_the_answer() -> None:
    text = "`lamp.on(level)`\n\nLights the lamp at a `level`.\n\n`lamp.off()`\n\nPuts the lamp out after `lamp.on`."
    answer = await final("How do I put the lamp out?", PageView("https://d.example/lamp", 1, "The lamp", text))
    assert answer.startswith("`lamp.off()`: Puts the lamp out after `lamp.on`. [1]")


KEEPING = PageView(
    "https://t.example/keeping",
    1,
    "Keeping tea",
    "# Keeping tea\n\nThe shop keeps its tea in the cellar under the stairs. The cellar is dry all year.",
)


async def test_a_page_that_only_leads_to_the_quoted_one_is_not_cited() -> None:
    start = PageView(
        "https://t.example/start", 2, "Start", "# Start\n\nThe page Keeping tea says where the shop keeps its tea."
    )
    for pages in ((KEEPING, start), (start, KEEPING)):
        text = await final("Where does the shop keep its tea?", *pages)
        assert text.startswith("The shop keeps its tea in the cellar under the stairs. [1]")
        assert "[2]" not in text


async def test_a_further_page_is_cited_for_a_further_word_of_the_question() -> None:
    more = PageView("https://t.example/coffee", 2, "Coffee", "# Coffee\n\nThe shop keeps its coffee in the attic.")
    text = await final("Where does the shop keep its tea and its coffee?", KEEPING, more)
    assert "in the cellar under the stairs. [1]" in text
    assert "in the attic. [2]" in text


async def test_a_page_that_says_part_of_the_question_leads_to_the_page_it_links_to() -> None:
    question = "The birthplace of Ada Berg is a port of what bay?"
    linked = "https://p.example/vik"
    berg = PageView("https://p.example/berg", 1, "Ada Berg", f"# Ada Berg\n\nAda Berg was born in [Vikholm]({linked}) in 1801.")
    messages = [Message("user", question), *searched(question, *hits(berg)), *read(berg)]
    assert arguments(await ask(messages)) == ("web_get", {"urls": [linked], "get_full": True})
    town = PageView(linked, 2, "Vikholm", "# Vikholm\n\nVikholm is a port on the Bay of Reeds. It has two mills.")
    name, given = arguments(await ask([*messages, *read(town, call_id="r2")]))
    assert name == "final_answer"
    assert "Vikholm is a port on the Bay of Reeds. [2]" in str(given["answer"])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When was the Kelm Tower opened?", "It was opened on 14 May 1911. [1]"),
        ("What is the Kelm Tower?", "The Kelm Tower is a tower over the Kelm valley. [1]"),
    ],
)
async def test_a_sentence_that_only_names_the_subject_does_not_stand_before_the_answer(question: str, text: str) -> None:
    tower = "# Kelm Tower\n\nThe Kelm Tower is a tower over the Kelm valley. It was opened on 14 May 1911. It has a café."
    answer = await final(question, PageView("https://p.example/kelm", 1, "Kelm Tower", tower))
    assert answer.startswith(text)


async def test_accents_may_be_left_out_of_a_question() -> None:
    page = PageView("https://p.example/a", 1, "Zoé Brûlé", "# Zoé Brûlé\n\nZoé Brûlé tunes pianos in Lyon. She has a dog.")
    assert await final("Where does Zoe Brule tune pianos?", page) == "Zoé Brûlé tunes pianos in Lyon. [1]"


@pytest.mark.parametrize(("place", "short"), [("Florida", "No."), ("the country", "")])
async def test_whether_both_are_so_is_concluded_where_the_pages_say_it(place: str, short: str) -> None:
    one = PageView(
        "https://p.example/1", 1, "Sandy Field", "# Sandy Field\n\nSandy Field is an airport in Lee County, Florida."
    )
    two = PageView(
        "https://p.example/2", 2, "Rohl Airport", "# Rohl Airport\n\nRohl Airport is an airport on the Virgin Islands."
    )
    answer = await final(f"Are Sandy Field and Rohl Airport both in {place}?", one, two)
    assert answer.startswith(short)
    assert answer.startswith(("Yes.", "No.")) == bool(short)


@pytest.mark.parametrize(
    ("word", "others", "least", "most"),
    [("found", {"establish"}, 0.4, 0.99), ("islam", {"islam"}, 1, 1), ("islam", {"islami"}, 0.7, 0.99), ("owl", {"tax"}, 0, 0)],
)
def test_a_word_is_said_by_related_words_in_part(word: str, others: set[str], least: float, most: float) -> None:
    assert least <= find_similarity(word, frozenset(others)) <= most


def page(number: int, title: str, text: str) -> PageView:
    return PageView(f"https://p.example/{number}", number, title, f"# {title}\n\n{text}")


@pytest.mark.parametrize(
    ("question", "one", "two", "short"),
    [
        (
            "Are both Ada Inn and Berg House restaurants?",
            "Ada Inn is a small restaurant in Ulm.",
            "Berg House is a restaurant chain.",
            "Yes.",
        ),
        (
            "Do Ada Inn and Berg House have the same director?",
            "Ada Inn is a film directed by Mia Kohl and Otto Wald.",
            "Berg House is a film directed by Otto Wald.",
            "Yes.",
        ),
        (
            "Do Ada Inn and Berg House have the same director?",
            "Ada Inn is a film directed by Mia Kohl.",
            "Berg House is a film directed by Otto Wald.",
            "No.",
        ),
        (
            "Which has more rooms, Ada Inn or Berg House?",
            "Ada Inn is a hotel with 15 rooms.",
            "Berg House is a hotel with 75–100 rooms.",
            "Berg House.",
        ),
        (
            "Which has fewer rooms, Ada Inn or Berg House?",
            "Ada Inn is a hotel with 15 rooms.",
            "Berg House is a hotel with 75 rooms.",
            "Ada Inn.",
        ),
        (
            "Which has more rooms, Ada Inn or Berg House?",
            "Ada Inn is a hotel with 15 rooms.",
            "Berg House is a large hotel in Ulm.",
            "",
        ),
    ],
)
def test_what_two_pages_settle_together_is_said_first(question: str, one: str, two: str, short: str) -> None:
    answer = compose_answer(read_question(question), [page(1, "Ada Inn", one), page(2, "Berg House", two)])
    assert (answer.short, answer.lines) == (short, ((one, 1), (two, 2)))


async def test_a_second_page_is_one_that_the_page_about_the_subject_names() -> None:
    """A page that shares more words with the question, but not its subject, does not stand in for it."""
    answer = await final(
        "Where did the father of Tim Sorel study?",
        page(1, "Tim Sorel", "Tim Sorel is a painter from Ulm. He is the son of Max Sorel, a judge."),
        page(2, "Otto Wald", "Trained by his father, Otto Wald chose to study law where his father had studied."),
        page(3, "Max Sorel", "Max Sorel was a judge. He studied law in Bern."),
    )
    assert re.findall(r"\[\d\]", answer)[:2] == ["[1]", "[3]"]


def test_a_page_is_named_also_without_the_title_after_a_comma() -> None:
    pages = [
        page(1, "Tim Sorel", "Tim Sorel is a painter from Ulm. The family of Max Sorel came from Bern."),
        page(2, "Ada Berg", "Ada Berg was born in 1950 in Ulm, and her father was a painter from Ulm."),
        page(3, "Max Sorel, 2nd Count of Ulm", "Max Sorel (born 3 May 1901) was a count. He had a dog."),
    ]
    lines = compose_answer(read_question("When was the father of Tim Sorel born?"), pages).lines
    assert lines[:2] == (("The family of Max Sorel came from Bern.", 1), ("Max Sorel (born 3 May 1901) was a count.", 3))


def test_a_sentence_of_forty_five_words_is_quoted_whole() -> None:
    text = "The mill of Ulm was closed in 1931 after the flood, and the town around it" + " slowly" * 27 + " went on."
    assert compose_answer(read_question("When was the mill of Ulm closed?"), [page(1, "Ulm", text)]).lines == ((text, 1),)


def test_a_very_long_sentence_loses_its_end_where_a_clause_ends() -> None:
    begins = "The mill of Ulm was closed in 1931 after the great flood of that spring had torn away the old wheel of oak"
    begins += " that the miller had brought from the hills,"
    pages = [page(1, "Ulm", begins + " and the town around it" + " slowly" * 30 + " went on.")]
    assert compose_answer(read_question("When was the mill of Ulm closed?"), pages).lines == ((f"{begins} …", 1),)


def test_a_sentence_is_never_cut_before_what_was_asked_for() -> None:
    text = "The mill of Ulm, which stood" + " slowly," * 60 + " was closed in 1931."
    assert compose_answer(read_question("When was the mill of Ulm closed?"), [page(1, "Ulm", text)]).lines == ((text, 1),)


def test_of_two_long_sentences_one_is_quoted_whole() -> None:
    first = "The old mill of Ulm stood idle" + " slowly" * 30 + "."
    second = "The old mill of Ulm burned down" + " quickly" * 30 + "."
    lines = compose_answer(read_question("What about the old mill of Ulm?"), [page(1, "Ulm", f"{first} {second}")]).lines
    assert lines == ((first, 1),)


def test_the_same_sentence_of_two_pages_is_quoted_once() -> None:
    text = "The old mill of Ulm burned down in 1902."
    pages = [page(1, "Ulm", text), page(2, "Ulm again", text)]
    assert compose_answer(read_question("When did the old mill of Ulm burn down?"), pages).lines == ((text, 1),)


def test_the_name_of_an_agency_is_no_part_of_a_quotation() -> None:
    pages = [page(1, "Ulm", "ULM, Germany (AP) — The old mill of Ulm burned down in 1902.")]
    lines = compose_answer(read_question("When did the old mill of Ulm burn down?"), pages).lines
    assert lines == (("The old mill of Ulm burned down in 1902.", 1),)


def test_what_a_colon_introduces_is_quoted_with_it() -> None:
    text = "There are three kinds of rock:\n\n- igneous rock\n- sedimentary rock\n- metamorphic rock\n\nRocks are old."
    lines = compose_answer(read_question("What are the kinds of rock?"), [page(1, "Rock", text)]).lines
    assert [line for line, _ in lines][:4] == [
        "There are three kinds of rock:",
        "- igneous rock",
        "- sedimentary rock",
        "- metamorphic rock",
    ]


async def test_a_how_to_is_answered_with_its_code() -> None:
    text = "To undo the last commit and keep its changes, run `lamp reset`:\n\n```\nif needed:\n    lamp reset --soft\n```"
    answer = await final("how to undo the last commit", page(1, "lamp", text))
    code = "```\nif needed:\n    lamp reset --soft\n```"
    assert answer == f"To undo the last commit and keep its changes, run `lamp reset`: [1]\n\n{code}"


def test_a_reading_model_chooses_among_the_sentences_that_share_words() -> None:
    """The nearest sentence is quoted, and without such a model, or where it fails, words decide."""
    said = "The firm of Ulm was set up by Mia Kohl."
    pages = [page(1, "Ulm", f"The firm of Ulm founded a firm. {said} The firm of Ulm was founded.")]
    question = read_question("Who founded the firm of Ulm?")

    def compare(asked: str, texts: Sequence[str]) -> list[float]:
        return [0.95 if said in text else 0.7 for text in texts]

    assert compose_answer(question, pages, compare).lines[0] == (said, 1)
    assert compose_answer(question, pages, lambda asked, texts: None) == compose_answer(question, pages)


def test_the_closest_passages_are_several_where_none_stands_out() -> None:
    pages = [page(1, "Ulm", "The mill burned down. The mill stood idle. The bridge was rebuilt.")]
    draft = compose_answer(read_question("Which brewer from Oslo sold the mill to Pieter Jansen?"), pages)
    assert draft == ExtractiveAnswer((("The mill burned down.", 1), ("The mill stood idle.", 1)), "", "no")


def test_a_further_page_is_left_out_where_it_hardly_speaks_to_the_question() -> None:
    pages = [
        page(1, "Apollo 1", "Grissom and White named their flight Apollo 1 as a focus on the first manned flight."),
        page(2, "Victoria", "Many people of the state describe themselves as Christian. The hills are green."),
    ]
    draft = compose_answer(read_question("How did Grissom and White describe the motive for naming their flight?"), pages)
    assert [number for _, number in draft.lines] == [1]


def test_a_manual_says_nothing_twice_and_an_identifier_once() -> None:
    lamp = "`lamp.on(level)`\n\nLights the lamp at a `level`. A lamp that is lit stays lit at its `level`."
    pages = [page(1, "lamp", f"{lamp}\n\n`lamp.glow(level)`\n\nLights the lamp at a `level`.")]
    assert compose_answer(read_question("Which function lights the lamp at a level?"), pages).lines == (
        ("`lamp.on(level)`: Lights the lamp at a `level`.", 1),
        ("A lamp that is lit stays lit at its `level`.", 1),
    )


def test_a_question_about_code_is_not_led_to_the_page_that_a_manual_names_beside_it() -> None:
    pages = [
        page(1, "lamp", "Unlike `torch`, a lamp has a cord.\n\n`lamp.keep`\n\nKeeps the lamp lit at night."),
        page(2, "torch", "`torch.hold`\n\nHolds the torch at night when `lamp.keep` is not there."),
    ]
    draft = compose_answer(read_question("Which lamp method keeps it lit at night?"), pages)
    assert draft.lines[0] == ("`lamp.keep`: Keeps the lamp lit at night.", 1)


MILL = (("stood idle", 1901), ("burned down", 1902), ("was rebuilt", 1903))


def test_a_third_sentence_is_left_out_where_all_three_would_lose_their_ends() -> None:
    """The two that stay keep what they say last."""
    pages = [page(1, "Ulm", " ".join(f"The old mill of Ulm {did}{' slowly' * 17} in {year}." for did, year in MILL))]
    lines = compose_answer(read_question("What about the old mill of Ulm?"), pages).lines
    assert [text.split()[-1] for text, _ in lines] == ["1901.", "1902."]


async def test_where_no_page_says_enough_alone_a_hit_that_a_page_names_is_read() -> None:
    question = "Which award did the sculptor of Grey Harbour win in Trondheim?"
    page = PageView("https://m.example/1", 1, "Grey Harbour", "The sculptor of Grey Harbour is Liv Berge of Norway.")
    more = [Hit("https://m.example/2", "Tin Awards", "An award."), Hit("https://m.example/3", "Liv Berge", "A musician.")]
    others = [PageView(f"https://m.example/{n}", n, "Cars", "The award has two wheels.") for n in range(4, 7)]
    reading = [Message("user", question), *searched(question, *hits(page), *hits(*others), *more), *read(page, *others)]
    assert arguments(await ask(reading)) == ("web_get", {"urls": [more[1].url], "get_full": True})
    whole = PageView(page.url, 1, "Grey Harbour", f"The sculptor of Grey Harbour did win an award in Trondheim. {OWL.text}")
    assert arguments(await ask([*reading[:3], *read(whole, *others)]))[0] == "final_answer"


def test_a_pair_of_sentences_says_less_than_one_that_says_most_of_the_question_alone() -> None:
    texts = ("Oxygen is poisonous to the germ that causes grey rot.", "A germ may be bad.", "Oxygen is a gas.")
    pages = [PageView(f"https://o.example/{n}", n, "", text) for n, text in enumerate(texts, start=1)]
    ranking = SentenceRanking(read_question("To what germ that causes grey rot is oxygen poisonous?"), pages)
    whole, germ, oxygen = sorted(ranking.ranked, key=lambda scored: scored.page)
    assert composition._says_less(ranking, [germ, oxygen], whole)
    assert not composition._says_less(ranking, [whole, oxygen], whole)
    assert not composition._says_less(ranking, [germ, germ], oxygen)
