"""The page as blocks of text in boxes: how long, how linked, how often repeated, and where.

Above sits `classifier`, which judges the blocks; below, a tree of resiliparse. This file knows the shape of HTML and nothing
of what is content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeAlias

from nexi.text.words import word_set

Node: TypeAlias = Any  # of a tree of resiliparse, which has no types for Python
Tree: TypeAlias = Any

MAX_BLOCKS = 100_000
MAX_INLINE_DEPTH = 6  # inline elements between a text and what it is compared with
PARAGRAPH = 80  # characters of running text that make a block a paragraph

_INLINE = word_set(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rp rt ruby s samp small span"
    " strike strong sub sup time tt u var wbr picture"
)
_SILENT = word_set(
    "script style noscript template svg canvas iframe object embed video audio dialog button select input textarea option"
    " datalist head title link meta"
)


class Box:
    """An element that starts a line of its own, and what is in it."""

    __slots__ = (
        "around", "blocks", "chars", "code", "depth", "kept", "key", "levels", "linked", "near", "node", "own", "paragraphs",
        "parent", "repeats", "shape", "tag", "unit",
    )  # fmt: skip

    def __init__(self, node: Node, tag: str, parent: Box | None) -> None:
        self.node, self.tag, self.parent = node, tag, parent
        self.depth: int = parent.depth + 1 if parent is not None else 0
        class_name, id_ = node.class_name, node.id
        self.key = f"{class_name} {id_}".lower() if class_name or id_ else ""
        self.own = -1  # where its own block is; a reference would make a cycle, and cycles of nodes broke trees
        self.blocks = self.chars = self.linked = self.paragraphs = self.repeats = self.kept = self.code = 0
        self.around: Any = None  # from here on for the judge of the page, who comes by each box often
        self.levels: Any = None
        self.near: Any = None
        self.shape = -1
        self.unit = ""  # the name of the list or table it is a part of

    def climb(self) -> Iterator[Box]:
        """This box and those around it, from the inside."""
        box: Box | None = self
        while box is not None:
            yield box
            box = box.parent

    def add_sums(self, box: Box, sign: int = 1) -> None:
        self.chars += sign * box.chars
        self.linked += sign * box.linked
        self.paragraphs += sign * box.paragraphs
        self.blocks += sign * box.blocks
        self.code += sign * box.code

    def is_inside(self, holder: Box | None) -> bool:
        """Whether it is this box, or one in it."""
        return any(box is holder for box in self.climb())

    def is_within(self, *tags: str) -> bool:
        """Whether one of these elements is around."""
        return any(box.tag in tags for box in self.climb())


class LayoutBlock:
    """The text directly in one box."""

    __slots__ = ("box", "linked", "nodes", "parts", "start", "text", "words")

    def __init__(self, box: Box) -> None:
        self.box = box
        self.nodes: list[Node] = []
        self.parts: list[str] = []
        self.text = ""
        self.linked = self.start = self.words = 0


class Layout:
    """All boxes and blocks of a page in reading order; `touching` are numbers that a style alone keeps apart."""

    __slots__ = ("blocks", "boxes", "chars", "deepest", "root", "touching")

    def __init__(self, body: Node) -> None:
        self.root = Box(body, "body", None)
        self.boxes = [self.root]
        self.blocks: list[LayoutBlock] = []
        self.touching: list[Node] = []
        self._walk_tree()
        self.deepest = max(box.depth for box in self.boxes)
        for block in self.blocks:
            words = " ".join(block.parts).split()
            block.text, block.words = " ".join(words), len(words)
            box, size = block.box, len(block.text)
            block.linked = min(block.linked, size)
            box.chars, box.linked, box.blocks = size, block.linked, 1
            box.paragraphs = size if size >= PARAGRAPH and block.linked < 0.4 * size else 0
        for box in reversed(self.boxes):  # children come after their parents
            if box.blocks and box.parent is not None:
                box.parent.add_sums(box)
        self._count_blocks()

    def drop_boxes(self, boxes: Collection[Box]) -> None:
        """Forget boxes that were taken out of the page, with all that is in them."""
        if not boxes:
            return
        dropped_ids = set(map(id, boxes))
        boxes_left: list[Box] = []
        for box in self.boxes:  # parents come before their children
            parent = box.parent
            if id(parent) in dropped_ids:
                dropped_ids.add(id(box))
            elif id(box) not in dropped_ids:
                boxes_left.append(box)
            elif parent is not None:
                for around in parent.climb():
                    around.add_sums(box, sign=-1)
                if parent.node.first_child is None:
                    dropped_ids.add(id(parent))
        self.boxes = [box for box in boxes_left if id(box) not in dropped_ids]
        self.blocks = [block for block in self.blocks if id(block.box) not in dropped_ids]
        self._count_blocks()

    def _walk_tree(self) -> None:
        """In reading order, without recursion: pages may nest deeper than the stack allows."""
        blocks, boxes = self.blocks, self.boxes
        rest: list[tuple[Node, Box, bool]] = [(self.root.node.first_child, self.root, False)]
        while rest and len(blocks) < MAX_BLOCKS:
            node, box, is_link = rest.pop()
            while node is not None:
                following, text = node.next, node.value
                if text is not None:
                    if text and not text.isspace() and node.tag == "#text":
                        if box.own < 0:
                            box.own = len(blocks)
                            blocks.append(block := LayoutBlock(box))
                        else:
                            block = blocks[box.own]
                            if text[0].isdecimal() and block.parts[-1][-1].isdecimal() and box.tag != "pre":
                                self._note_touch(block, node, text)
                        block.nodes.append(node)
                        block.parts.append(text)
                        if is_link:
                            block.linked += len(text.strip())
                elif (child := node.first_child) is not None and (tag := node.tag) and tag not in _SILENT:
                    if following is not None:
                        rest.append((following, box, is_link))
                    if tag not in _INLINE:
                        box = Box(node, tag, box)
                        boxes.append(box)
                    elif tag == "a":
                        is_link = is_link or node.hasattr("href")
                    elif tag == "code":
                        box.code += 1
                    following = child
                node = following

    def _note_touch(self, block: LayoutBlock, node: Node, text: str) -> None:
        """Remember a number beside another; one with a digit in bold, or with each digit in an element, is one number."""
        before = block.nodes[-1]
        is_within = _is_above(before.parent, node) or _is_above(node.parent, before)
        if not is_within and (len(text) > 1 or len(block.parts[-1]) > 1):
            self.touching.append(node)

    def _count_blocks(self) -> None:
        """Where each block begins, and how many boxes are alike; those without text are not counted, and have no alike ones."""
        self.chars = 0
        for block in self.blocks:
            block.start, self.chars = self.chars, self.chars + len(block.text)
        boxes = [box for box in self.boxes if box.blocks]
        alike = Counter((id(box.parent), box.tag, box.key) for box in boxes)
        for box in boxes:
            box.repeats = alike[id(box.parent), box.tag, box.key]


def _is_above(holder: Node, node: Node) -> bool:
    for _ in range(MAX_INLINE_DEPTH):
        node = node.parent
        if node is None or node == holder:
            return node is not None
    return False


def drop_nodes(nodes: Iterable[Node]) -> None:
    """Take elements out of the page, but those that have gone with another one."""
    for node in nodes:
        if node.parent is not None:
            node.decompose()
