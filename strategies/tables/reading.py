"""Reading of one document for a table: its calls, and the row that their replies make.

A document is read in one call, or in parts of about equal length if it is longer than a call takes; more than
:data:`~prompts.tables.cells.FIELDS` fields take a call for each so many, over the same beginning of the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.seams import Complete
from posology.text.sentences import split
from posology.types import Call, Excerpt, Finish, Passage, Query, Stage
from posology.types.tables import Document, Field
from prompts.tables.cells import FIELDS, TableReply, render_table, table_schema
from strategies.tables.cells import Cell, Gap, TableRow, merged, verified

STRATEGY = "table"
#: Words of a document that one call reads: about 30,000 tokens, which all current models take.
PART_WORDS = 20_000
#: sentences of one excerpt: names of sentences have two digits
_SENTENCES = 60
#: Tokens of a reply: around all cells, and of one cell with a value of some 40 words and four sentences. An estimate.
_REPLY, _CELL = 32, 128
#: expected output tokens of a cell. An estimate.
EXPECTED_CELL = 48


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the documents of a table are read."""

    fields: tuple[Field, ...]
    #: ``provider:name``
    model: str
    #: maximum output tokens of one call; ``None``: as many as the fields need
    max_tokens: int | None = None
    #: as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: the default of extractions
    effort: str | None = None
    #: words of a document that one call reads
    part_words: int = PART_WORDS

    @cached_property
    def _groups(self) -> tuple[tuple[Field, ...], ...]:
        fields = iter(self.fields)
        return tuple(iter(lambda: tuple(islice(fields, FIELDS)), ()))

    def calls(self, document: Document) -> tuple[Call, ...]:
        """Return the calls that read a document: part by part, all fields of a part in turn. Blocking."""
        return tuple(
            self._call(part, fields)
            for part in parts(document, self.part_words)
            for fields in self._groups
        )

    async def __call__(self, document: Document, complete: Complete) -> TableRow:
        """Read a document.

        Args:
            document: the document.
            complete: makes calls.

        Raises:
            ProviderError: a call failed.
        """
        cells: dict[str, list[Cell]] = {}
        for call in self.calls(document):
            completion = await complete(call)
            reply = completion.parsed
            said = {}
            if isinstance(reply, TableReply):
                said = {one.field.strip().lower(): one for one in reply.cells}
            for field in call.fields:
                cell = verified(field, said.get(field.name), call.excerpts)
                if completion.finish is Finish.FILTERED:
                    cell = Cell(field=field, gap=Gap.DECLINED)
                cells.setdefault(field.name, []).append(cell)
        return TableRow(document=document, cells=tuple(map(merged, cells.values())))

    def _call(self, excerpts: tuple[Excerpt, ...], fields: tuple[Field, ...]) -> Call:
        rendered = render_table(excerpts, fields)
        effort = effort_of(self.model, Stage.EXTRACT, self.effort)
        bound = _REPLY + _CELL * len(fields) + reasoning_tokens(self.model, effort)
        return Call(
            stage=Stage.EXTRACT,
            model=self.model,
            query=Query(text=" ".join(field.question for field in fields)),
            excerpts=excerpts,
            messages=rendered.messages,
            prompt=rendered.prompt,
            schema=table_schema(len(excerpts)),
            max_tokens=self.max_tokens or bound,
            effort=effort,
            # a write costs more than it saves unless another call follows
            cached=rendered.ends if len(self._groups) > 1 else (),
            strategy=STRATEGY,
            quotes="sentences",
            fields=fields,
        )


def unread(fields: Sequence[Field], document: Document) -> TableRow:
    """Return the row of a document that was not read."""
    cells = tuple(Cell(field=field, gap=Gap.FAILED) for field in fields)
    return TableRow(document=document, cells=cells)


def parts(document: Document, words: int) -> list[tuple[Excerpt, ...]]:
    """Return the excerpts that each call over a document reads; together they have all of its sentences.

    Args:
        document: the document.
        words: most words of a part; one excerpt of more words is a part of its own.
    """
    excerpts = [one for passage in document.passages for one in _excerpts(passage)]
    sizes = [sum(len(s.of(one.passage.text).split()) for s in one.sentences) for one in excerpts]
    wanted = sum(sizes) / max(1, -(-sum(sizes) // words))
    found: list[list[Excerpt]] = [[]]
    length = 0
    for one, size in zip(excerpts, sizes, strict=True):
        if found[-1] and (length + size > words or length + size / 2 > wanted):
            found.append([])
            length = 0
        found[-1].append(one)
        length += size
    return [tuple(some) for some in found]


def _excerpts(passage: Passage) -> Iterator[Excerpt]:
    sentences = split(passage.text)
    for first in range(0, len(sentences), _SENTENCES):
        yield Excerpt(passage=passage, sentences=sentences[first : first + _SENTENCES])
