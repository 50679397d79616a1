"""Statements of real replies, labelled by hand: what the guard on named sentences drops and keeps, and what labels say.

``python -m evals.live.statements sample`` takes statements out of the recordings of ``tests/recorded``, ``show`` prints those without
a label with the sentences that they name, ``report`` tables of what stands and what is said, from the recorded replies
as they are read today. Nothing is ever trained on these labels.

A row of the file has a statement, the sentences that it names or is cited from, by their offsets, and from each
pass a label and the places of those sentences that bear the statement out, wholly or in part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.models import Models
from orchestrator.question.answering import no_judge
from posology.types import Answer
from tests.support import recorded
from tests.support.recorded import key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from posology.seams import SupportJudge
    from posology.types import SentenceSupport, Statement
    from tests.support.recorded import Library

    Judge = Callable[[], SupportJudge | None]

FILE = Path(__file__).parents[1] / "data" / "statements.jsonl"
LABELS = ("supported", "not", "contradicted")
_IDS = re.compile(r"\s*\[[^\[\]]*\]")
#: statements of one question by one model, at most
_MOST = 2

Row = dict[str, Any]
Span = tuple[str, int, int]


def known(path: Path = FILE) -> list[Row]:
    """Return the rows of the file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(rows: Iterable[Row]) -> None:
    FILE.write_text(
        "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8"
    )


async def _answers(library: Library, judge: Judge = no_judge) -> list[tuple[Row, Answer]]:
    """Return the recordings that give an answer, and the answers."""
    found = []
    for row in recorded.rows():
        passages = library.passages(row)
        if passages is None or row["way"] == recorded.CELLS or "error" in row["outcome"]:
            continue
        outcome = await recorded.replayed(row, library.asked[key(row)], passages, judge)
        if isinstance(outcome, Answer):
            found.append((row, outcome))
    return found


def _words(answer: Answer, one: Statement) -> str:
    """Return a statement without the ids of its passages, which change with what stands."""
    return _IDS.sub("", answer.text[one.start : one.end]).rstrip(".")


def _named(answer: Answer, one: Statement) -> tuple[list[Span], list[Span]]:
    """Return the sentences behind a statement: those that stand, and those that were dropped."""
    cited = [answer.citations[at] for at in one.citations]
    kept = [(c.passage_id, c.start, c.end) for c in cited]
    return kept, [(c.passage_id, c.start, c.end) for c in one.refused]


async def sample(library: Library, count: int) -> list[Row]:
    """Return the labelled rows, and as many new ones as make ``count``, at most two for a question and model."""
    found = known()
    have = {(row["model"], key(row), row["text"]) for row in found}
    asked = Counter((row["model"], key(row)) for row in found)
    new = []
    for row, answer in await _answers(library):
        for one in answer.statements:
            kept, refused = _named(answer, one)
            text = _words(answer, one)
            if (row["model"], key(row), text) in have or not kept + refused:
                continue
            have.add((row["model"], key(row), text))
            about = {name: row[name] for name in ("model", "way", "set", "id")}
            new.append(about | {"text": text, "named": sorted(kept + refused), "passes": []})
    new.sort(key=lambda row: zlib.crc32(f"{row['model']} {key(row)} {row['text']}".encode()))
    for row in new:
        asked[row["model"], key(row)] += 1
        if len(found) < count and asked[row["model"], key(row)] <= _MOST:
            found.append(row)
    return found


def show(rows: Sequence[Row], library: Library, number: int) -> Iterator[str]:
    """Yield what is read to label the rows that have no label of a pass."""
    for at, row in enumerate(rows):
        if len(row["passes"]) >= number:
            continue
        yield f"\n#{at} [{row['set']}] {library.asked[key(row)].question}\n  {row['text']}"
        for place, (passage, start, end) in enumerate(row["named"]):
            yield f"   {place}) {passage}: {library.documents[passage].text[start:end]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A labelled statement, and what the product makes of it today."""

    #: of :data:`LABELS`, by the last pass
    label: str
    #: whether all passes say the same; ``None``: there was one
    agreed: bool | None
    #: of each sentence: whether it bears the statement out, and whether it stands
    sentences: tuple[tuple[bool, bool], ...]
    #: ``None``: the statement is not shown any more
    support: SentenceSupport | None


async def seen(rows: Sequence[Row], library: Library, judge: Judge = no_judge) -> list[Seen]:
    """Return the labelled statements as the product reads their replies today."""
    answers = {
        (row["model"], row["way"], key(row)): answer
        for row, answer in await _answers(library, judge)
    }
    found = []
    for row in rows:
        if not row["passes"]:
            continue
        last = row["passes"][-1]
        answer = answers.get((row["model"], row["way"], key(row)))
        kept, support = _today(answer, row["text"])
        found.append(
            Seen(
                label=last["label"],
                agreed=all(one == last for one in row["passes"])
                if len(row["passes"]) > 1
                else None,
                sentences=tuple(
                    (place in last["right"], tuple(span) in kept)
                    for place, span in enumerate(row["named"])
                ),
                support=support,
            )
        )
    return found


def _today(answer: Answer | None, text: str) -> tuple[set[Span], SentenceSupport | None]:
    """Return the sentences that stand behind a statement today, and its support."""
    for one in answer.statements if answer else ():
        if answer and _words(answer, one) == text:
            every = answer.support.sentences if answer.support else ()
            support = next((s for s in every if s.start < one.end and s.end > one.start), None)
            return set(_named(answer, one)[0]), support
    return set(), None


def report(found: Sequence[Seen]) -> str:
    """Return the tables as Markdown."""
    twice = [one.agreed for one in found if one.agreed is not None]
    sentences = Counter(pair for one in found for pair in one.sentences)
    lines = [
        f"{len(found)} statements, {len(twice)} read twice; both passes agree on {sum(twice)}.",
        "",
        "| named sentences | stand | dropped |",
        "| --- | --- | --- |",
    ]
    for right, name in ((True, "bear the statement out"), (False, "do not")):
        lines.append(f"| {name} | {sentences[right, True]} | {sentences[right, False]} |")
    shown = sorted({one.support.backing.value for one in found if one.support})
    head = ("statement", "a sentence stands", *shown, "a difference is shown")
    lines += ["", f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for label in LABELS:
        some = [one for one in found if one.label == label]
        counts = (
            sum(any(stands for _, stands in one.sentences) for one in some),
            *(
                sum(one.support is not None and one.support.backing.value == each for one in some)
                for each in shown
            ),
            sum(one.support is not None and bool(one.support.differences) for one in some),
        )
        lines.append(f"| {label} ({len(some)}) | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def main() -> None:
    """Parse the arguments and run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("sample", "show", "report"))
    parser.add_argument("--data", type=Path, default=recorded.DATA)
    parser.add_argument("--count", type=int, default=200, help="statements of the file")
    parser.add_argument("--number", type=int, default=1, help="show: what has fewer passes")
    parser.add_argument("--judge", action="store_true", help="report: with the packaged judge")
    args = parser.parse_args()
    library = recorded.library(args.data)
    if args.command == "sample":
        _write(asyncio.run(sample(library, args.count)))
    elif args.command == "show":
        print("\n".join(show(known(), library, args.number)))
    else:
        judge = Models(None).judge if args.judge else no_judge
        print(report(asyncio.run(seen(known(), library, judge))))


if __name__ == "__main__":
    main()
