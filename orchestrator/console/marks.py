"""Answers with the support of each sentence, and texts with their quotes marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.rendering.sources import Cited, answer_text, cited, doubted, mark, numbered
from posology.published.answers import AskOutput
from posology.types import Backing

#: characters up to which a text is shown whole
_WHOLE = 4_000
#: characters around a quote that are shown of a longer text
_AROUND = 700


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A piece of a text."""

    text: str
    #: whether it is quoted
    quoted: bool = False
    #: whether text before it is left out
    cut: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence of an answer, with the numbers of its sources instead of their ids."""

    text: str
    #: ``supported``, ``unclear``, ``unsupported`` or ``contradicted``; empty: not checked
    backing: str = ""
    #: the verdict in words, where a reader must see it
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A cited passage with its quotes marked."""

    cited: Cited
    runs: tuple[Run, ...]
    #: whether the text is the whole passage, and not the sentences around each quote
    whole: bool


def sentences(out: AskOutput) -> tuple[Sentence, ...]:
    """Return an answer sentence by sentence, or the reason of a refusal."""
    if out.answer is None or out.support is None or not out.judged:
        return (Sentence(text=answer_text(out)),)
    found, end = list[Sentence](), 0
    for one in out.support.sentences:
        if gap := out.answer[end : one.start].strip():
            found.append(Sentence(text=numbered(out, gap)))
        text = numbered(out, out.answer[one.start : one.end])
        backing = Backing.UNCLEAR if doubted(one) else one.backing
        found.append(Sentence(text=text, backing=backing.value, why=mark(one)[2:-1]))
        end = one.end
    if rest := out.answer[end:].strip():
        found.append(Sentence(text=numbered(out, rest)))
    return tuple(found)


def cards(out: AskOutput, texts: Mapping[str, str]) -> tuple[Card, ...]:
    """Return the cited passages of an answer.

    Args:
        out: the answer.
        texts: texts of passages by id, as far as the index has them.
    """
    return tuple(_card(one, texts.get(one.source.id)) for one in cited(out))


def _card(reference: Cited, text: str | None) -> Card:
    if text is not None and all(text[e.start : e.end] == e.quote for e in reference.evidence):
        spans = [(e.start, e.end) for e in reference.evidence]
        return Card(cited=reference, runs=marked(text, spans), whole=len(text) <= _WHOLE)
    runs = list[Run]()
    for e in reference.evidence:
        start = e.start - e.context_start
        some = marked(e.context, [(start, start + len(e.quote))])
        runs += [
            Run(text=run.text, quoted=run.quoted, cut=run.cut or not i)
            for i, run in enumerate(some)
        ]
    return Card(cited=reference, runs=tuple(runs), whole=False)


def marked(text: str, spans: Iterable[tuple[int, int]]) -> tuple[Run, ...]:
    """Return a text in runs; of a long one, only the surroundings of its quotes.

    Args:
        text: the text.
        spans: start and end of each quote, in code points; they may overlap.
    """
    quotes = _merged(spans, 0)
    if len(text) <= _WHOLE:
        shown = [(0, len(text))]
    else:
        near = [(max(0, start - _AROUND), min(len(text), end + _AROUND)) for start, end in quotes]
        shown = _merged(near or [(0, _WHOLE)], 0)
    runs = list[Run]()
    for first, last in shown:
        at, cut = first, first > 0
        for start, end in quotes:
            if first <= start and end <= last:
                if start > at:
                    runs.append(Run(text=text[at:start], cut=cut))
                    cut = False
                runs.append(Run(text=text[start:end], quoted=True, cut=cut))
                at, cut = end, False
        if at < last:
            runs.append(Run(text=text[at:last], cut=cut))
    return tuple(runs)


def _merged(spans: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Return spans in order, those that overlap or lie within a gap as one."""
    found = list[tuple[int, int]]()
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
