"""Notes of Obsidian and Logseq become text that reads like the note, with what they say of themselves."""

from __future__ import annotations

import time
import unicodedata

from nexi.formats.vaults import Note, find_blocks, read_note

OBSIDIAN = """---
title: "Shed: the keys"
aliases: [Tool house, "Hut, old"]
tags:
  - garden/tools
  - keys
created: 2026-03-04
updated: 2026-05-06T10:00
status: open
cssclasses: wide
---
# Where they hang

The key of [[Garden plan|the shed]] hangs behind [[Doors#Blue door]]. #spare-key ^key-place

> [!warning]- Do not lose it
> See ![[scan.png|300]] and ![[Ladder]].

![[Doors#^paint]]

Issue #12 is ==done==. `[[not a link]]`

```python
x = "[[no link]]"  #nothing
```
"""


def test_a_note_of_obsidian_has_its_properties_links_and_tags_as_words() -> None:
    blocks = {"doors^paint": "The door was painted in 2019, see [[Paint]]."}
    assert read_note(OBSIDIAN, "shed.md", lambda mark: blocks.get(mark, "")) == Note(
        text=(
            "Aliases: Tool house, Hut, old  \nTags: garden/tools, keys, spare-key  \ncreated: 2026-03-04  \n"
            "updated: 2026-05-06T10:00  \nstatus: open\n\n"
            "# Where they hang\n\nThe key of the shed hangs behind Doors, Blue door. #spare-key\n\n"
            "> Do not lose it\n> See scan.png and Ladder.\n\n"
            "The door was painted in 2019, see Paint.\n\n"
            'Issue #12 is done. `[[not a link]]`\n\n```python\nx = "[[no link]]"  #nothing\n```'
        ),
        title="Shed: the keys",
        aliases=("Tool house", "Hut, old"),
        tags=("garden/tools", "keys", "spare-key"),
        published="2026-03-04",
        updated="2026-05-06T10:00",
    )


def test_a_page_of_logseq_has_its_properties_and_the_words_of_blocks_it_refers_to() -> None:
    page = (
        "alias:: Boat house, Quay\ntags:: harbour, [[winter work]]\n\n"
        "- Repairs of [[The Quay]] #urgent #[[next year]]\n  id:: 64f0a1b2-0000-4000-8000-000000000001\n"
        "\t- See ((64f0a1b2-0000-4000-8000-000000000002)) and {{embed [[Ropes]]}}\n"
    )
    blocks = dict(find_blocks("- The crane lifts 3 tons\n  id:: 64f0a1b2-0000-4000-8000-000000000002\n", "cranes.md"))
    assert read_note(page, "Harbour___Boat%20house.md", lambda mark: blocks.get(mark, "")) == Note(
        text=(
            "Aliases: Boat house, Quay  \nTags: harbour, winter work, urgent, next year\n\n"
            "- Repairs of The Quay #urgent #next year\n\t- See The crane lifts 3 tons and Ropes"
        ),
        title="Harbour/Boat house",
        aliases=("Boat house", "Quay"),
        tags=("harbour", "winter work", "urgent", "next year"),
    )


def test_the_day_in_the_name_of_a_daily_note_is_its_date() -> None:
    assert (read_note("Rain.", "2026-05-01.md").published, read_note("Rain.", "2026_05_01.md").published) == (
        "2026-05-01",
        "2026-05-01",
    )


def test_blocks_are_found_by_the_mark_at_their_end_or_below_them() -> None:
    source = "First point. ^one\n\n- Second point\n\n^two\n\n- Third\n  id:: 64f0a1b2-0000-4000-8000-000000000003\n"
    assert dict(find_blocks(source, "Some Note.md")) == {
        "some note^one": "First point.",
        "some note^two": "Second point",
        "64f0a1b2-0000-4000-8000-000000000003": "Third",
    }


def test_notes_that_refer_to_each_other_in_a_circle_end_at_the_first_block() -> None:
    blocks = {"b^1": "B says ![[A#^1]]", "a^1": "A says ![[B#^1]]"}
    assert read_note("A says ![[B#^1]]", "A.md", lambda mark: blocks.get(mark, "")).text == "A says B says A"


def test_a_link_without_an_end_and_front_matter_without_an_end_are_text() -> None:
    assert read_note("---\ntitle: no end\n\n[[open", "a.md").text == "---\ntitle: no end\n\n[[open"


def test_a_name_in_decomposed_letters_gives_a_composed_title_and_is_met_by_links() -> None:
    name = unicodedata.normalize("NFD", "Gärten.md")
    blocks = dict(find_blocks("Zehn Beete. ^beete", name))
    note = read_note("Siehe ![[Gärten#^beete]]", "Plan.md", lambda mark: blocks.get(mark, ""))
    assert (read_note("Beete", name).title, note.text) == ("Gärten", "Siehe Zehn Beete.")


def test_reading_a_long_note_takes_time_in_proportion_to_its_length() -> None:
    def seconds(size: int) -> float:
        source = "a [[b|c]] ((zz)) #t `x [[ ![[ %% == ^m\n" * (size // 40)
        started = time.process_time()
        read_note(source, "long.md")
        list(find_blocks(source, "long.md"))
        return time.process_time() - started

    seconds(10_000)
    assert seconds(1_000_000) < 40 * max(0.05, seconds(100_000))
