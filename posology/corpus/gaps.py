"""Places of a document that its reader could not read: marked in the text, and counted in one remark.

A reader writes a *sign* of :class:`Gaps` where something stands that it cannot read. Signs are private characters, so that
they pass through the building of paragraphs as any character does; where a text is left out, its signs are, too.
:meth:`Gaps.shown` makes each sign of a finished text :data:`~posology.types.UNREADABLE`, and so each character that says
nothing by itself: private use, controls, and what an earlier program has lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from posology.corpus.drafts import Draft, Remarked
from posology.types import UNREADABLE, Passage

#: stands for a picture. One in a line of words may be a sign (≥) or a formula; one by itself is left out, as a figure
PICTURE = "\U0010fffd"
#: signs that readers share, and what they stand for
SIGNS = {PICTURE: "picture in a line of text"}

_LOST = "character that the file itself has lost, or that is none of its encoding"
_FIRST = 0x100000
#: kinds that are counted by name, and those that a remark names
_KINDS, _NAMED = 1_000, 5
#: characters before the first place of a kind that are shown, so that it can be found
_BEFORE = 40
_SILENT = re.compile(
    "[\ufffc\ufffd\x00-\x08\x0b-\x0c\x0e-\x1f\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)


#: instead of saying what a picture shows, its text often is one of these
_NO_TEXT = re.compile(
    r"(?:inline[- ]?)?(?:graphic|image|img|picture|pic|formula|equation|eqn?|math|symbol|figure|fig)[\W\d_]*"
    r"|\S+\.(?:gif|png|jpe?g|svg|webp|bmp|tiff?)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w")


def pictured(text: str | None) -> str:
    """Return the text that stands for a picture in a line: its own, else :data:`PICTURE`."""
    text = " ".join((text or "").split())
    if not text or _NO_TEXT.fullmatch(text):
        return PICTURE
    return f" {text} " if text[0].isalnum() and text[-1].isalnum() else text


def without_figures(line: str) -> str:
    """Return a line, without its pictures if it has no words."""
    return line if _WORD.search(line) else line.replace(PICTURE, "").strip()


class Gaps:
    """The places of one document that could not be read."""

    def __init__(self, signs: Mapping[str, str] = SIGNS) -> None:
        """Begin.

        Args:
            signs: characters that a reader writes as they are, from the end of Unicode, and what they stand for.
        """
        self._kinds = dict(signs)
        self._signs = {kind: sign for sign, kind in signs.items()}
        #: of each kind the number of its places, and what stands before the first
        self._found: dict[str, tuple[int, str]] = {}

    def sign(self, kind: str) -> str:
        """Return the character to write where something of a kind stands.

        Args:
            kind: a noun, in the singular: ``formula that is a picture``.
        """
        if len(self._signs) > _KINDS and kind not in self._signs:
            kind = "others"
        if kind not in self._signs:
            self._signs[kind] = chr(_FIRST + len(self._signs))
            self._kinds[self._signs[kind]] = kind
        return self._signs[kind]

    def shown(self, text: str) -> str:
        """Return a finished text, in which :data:`~posology.types.UNREADABLE` is what could not be read, and count that."""
        if text.isascii() and text.isprintable():
            return text

        def shown(found: re.Match[str]) -> str:
            kind = self._kind(found[0])
            count, before = self._found.get(kind, (0, ""))
            if not count:
                before = self.marked(text[max(0, found.start() - _BEFORE) : found.start()])
            self._found[kind] = count + 1, " ".join(before.split())
            return UNREADABLE

        return _SILENT.sub(shown, text)

    @staticmethod
    def marked(text: str) -> str:
        """Return a heading, in which :data:`~posology.types.UNREADABLE` is what could not be read; it is not counted."""
        return _SILENT.sub(UNREADABLE, text)

    def _kind(self, char: str) -> str:
        if char in (UNREADABLE, "\ufffc"):
            return _LOST
        return (
            self._kinds.get(char) or f"character U+{ord(char):04X}, which has no meaning of its own"
        )

    def remarks(self, record: str) -> Iterator[Remarked]:
        """Yield what could not be read, if anything.

        Args:
            record: id of the document.
        """
        if not self._found:
            return
        total = sum(count for count, _ in self._found.values())
        named = [
            f"{kind} ({'' if count == 1 else f'{count:,}, first '}{f'after “{before}”' if before else 'at the start'})"
            for kind, (count, before) in list(self._found.items())[:_NAMED]
        ]
        if len(self._found) > _NAMED:
            named.append(f"other kinds ({len(self._found) - _NAMED:,})")
        places = "place" if total == 1 else "places"
        yield Remarked(
            reason=f"{total:,} {places} could not be read, {UNREADABLE} in the text: {'; '.join(named)}",
            record=record,
        )


def told(drafts: Iterator[Draft], gaps: Gaps, *, record: str) -> Iterator[Draft]:
    """Yield the parts of one document, their texts as :meth:`Gaps.shown` says, and then what could not be read.

    Args:
        drafts: whose readers wrote signs of ``gaps``.
        gaps: of this document.
        record: its id.
    """
    for draft in drafts:
        if isinstance(draft, Passage):
            section = draft.section and Gaps.marked(draft.section)
            yield replace(draft, text=gaps.shown(draft.text), section=section)
        else:
            yield draft
    yield from gaps.remarks(record)
