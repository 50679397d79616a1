"""The title of a document: what its first page shows largest, or what the file says if the page shows that."""

from __future__ import annotations

from collections.abc import Sequence

from posology.corpus.pdf.blocks import Block, Role, is_named
from posology.corpus.pubmed.words import plain

#: type of a title, in heights of the text's
LARGER = 1.15
#: words of a title in larger type: fewer are a journal's name or a label, if more stand in type that is not much smaller
FEWEST = 3
SMALLER = 0.55
#: characters that a title has
SHORTEST, LONGEST = 8, 400
#: blocks that a title consists of, a line each if its type changes
MOST_BLOCKS = 20
#: notes behind a title
_NOTES = "*†‡§¶# "


def titled(blocks: Sequence[Block], named: str, body: float) -> tuple[str, list[Block]]:
    """Return the title of a document, empty where none is found, and its blocks without the title.

    Args:
        blocks: of the document, in reading order.
        named: title in the file's own data, which is often another's or none.
        body: height of the text's type, points.
    """
    first = [block for block in blocks if block.lines[0].page == blocks[0].lines[0].page]
    named = plain(named)
    found = _shown(first, named) if SHORTEST < len(named) <= LONGEST else None
    if found is not None:
        title = named
    else:
        found = _largest(first, body)
        title = plain(" ".join(block.text for block in found)).rstrip(_NOTES)
    gone = {id(block) for block in found}
    kept = [block for block in blocks if id(block) not in gone]
    if found:
        # behind it stand authors, who head nothing
        for block in blocks[blocks.index(found[-1]) + 1 :]:
            if block.role is not Role.HEADING or is_named(block.text):
                break
            block.role = Role.TEXT
    return title, kept


def _shown(blocks: Sequence[Block], title: str) -> list[Block] | None:
    """Return the blocks that are the title, none if it stands within others; ``None``: it is not shown."""
    wanted = _bare(title)
    if not wanted or wanted not in "".join(_bare(block.text) for block in blocks):
        return None
    for start in range(len(blocks)):
        text = ""
        for end in range(start, min(len(blocks), start + MOST_BLOCKS)):
            text += _bare(blocks[end].text)
            if text == wanted:
                return list(blocks[start : end + 1])
            if not wanted.startswith(text):
                break
    return []


def _largest(blocks: Sequence[Block], body: float) -> list[Block]:
    """Return the blocks in the largest type of several words, or a bold one in the text's type above all text."""
    groups: list[list[Block]] = []
    for block in blocks:
        if block.role is Role.ROW or block.aside or block.size < LARGER * body:
            continue
        last = groups[-1][-1] if groups else None
        if last is not None and _continues(last, block):
            groups[-1].append(block)
        else:
            groups.append([block])
    groups = [
        group
        for group in groups
        if SHORTEST <= len(text := _text(group)) <= LONGEST and "@" not in text
    ]
    if groups:
        largest = max(groups, key=_size)
        several = [
            group
            for group in groups
            if len(_text(group).split()) >= FEWEST and _size(group) >= SMALLER * _size(largest)
        ]
        return max(several or [largest], key=_size)
    first = next(iter(blocks), None)
    if first is not None and first.role is Role.HEADING and first.bold:
        return [first] if SHORTEST <= len(first.text) <= LONGEST else []
    return []


def _continues(last: Block, block: Block) -> bool:
    if abs(last.size - block.size) > 0.03 * last.size or last.bold != block.bold:
        return False
    above, below = last.lines[-1], block.lines[0]
    return above.turn == below.turn and 0 < below.base - above.base < 2 * last.size


def _size(group: Sequence[Block]) -> float:
    return group[0].size


def _text(group: Sequence[Block]) -> str:
    return " ".join(block.text for block in group)


def _bare(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
