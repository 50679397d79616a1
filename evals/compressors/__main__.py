"""Measures what each compressor leaves, loses and costs, on the same questions.

Usage: ``python -m evals.compressors [--data PATH] [--questions N] [--claims N] [--only NAME …] [--again]``.

400 SQuAD questions about articles that the pruner was not trained on, with 8 of 913 paragraphs retrieved for each,
and 200 SciFact claims with rationales, each with its abstract and four retrieved ones. For every compressor of
``COMPRESSORS`` and some cascades, at several shares: the share of the passages' tokens left, the share of the words of
gold sentences shown, whether the offline reader's answer holds the gold answer, seconds a passage, and dollars at a
shadow price. 95 % intervals are bootstrapped over documents. Results are kept under ``--work`` by compressor and
question, so an interrupted run resumes.

Not covered: how a language model reads fragments or writes summaries. Paid compressors are asked of the offline model,
which copies sentences. Compressors whose weights are missing are listed as not measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from evals import pooled
from evals.compressors.data import CLAIMS, FILES, Asked, scifact, squad
from evals.compressors.measure import BATCH, Chance, Kept, Reader, Row, Whole, measure, sources
from evals.compressors.report import against, draw, points, table
from posology.errors import PosologyError
from posology.index.learned import read_learned
from posology.index.store import Index
from posology.llm.offline.reader import ExtractiveReader
from posology.seams import Complete, Compressor, Rewriter
from posology.store.memory import SqliteMemory
from strategies.compression import COMPRESSORS, make
from strategies.compression.parts import Parts
from strategies.compression.self_information.annotator import NgramScorer
from training.gold import need

#: shares at which compressors are measured that leave whole sentences, and ``None``: their own choice
SENTENCES = (0.05, 0.1, 0.2, 0.4)
#: the same of those that leave words
WORDS = (0.3, 0.5, 0.7)
OWN = (None, *SENTENCES)
#: by name; else :data:`OWN`
LEVELS: dict[str, Sequence[float | None]] = {
    "whole": (None,),
    "chance": SENTENCES,
    "pruner": OWN,
    "leancontext": SENTENCES[1:],
    "leancontext_top": SENTENCES,
    "selective_context": WORDS,
    "selective_context_word": WORDS,
    "selective_context_sentence": (0.2, 0.4, 0.7),
    "tcra_semantic": WORDS,
    "tcra_semantic_fast": WORDS,
    "query_summary": (0.1, 0.2, 0.4),
    "semantic_rewrite": (0.2, 0.4),
}
#: sentences kept whole, the rest compressed (table 3 of LeanContext)
CASCADES = (
    "top+selective_context",
    "pruner+selective_context",
    "top+extractive_summary",
    "top+query_summary",
)
#: shares of cascades' sentences that are kept whole
TOPS = (0.1, 0.2)
#: compressors that are asked the first questions of a set alone: of an abstract's words each takes an encoding of
#: its own, and there are 1,000 abstracts
LIMITS = {("scifact", "tcra_semantic"): 68}
BASE = "leancontext_top"
#: what a run without weights cannot measure, and COMPRESSORS does not name
UNMEASURED = (
    "selective_context by GPT-2 (POSOLOGY_SELF_INFORMATION at ingest): no weights; measured by n-grams",
)
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "compressors.png"


@dataclass(frozen=True, kw_only=True, slots=True)
class Set:
    """Questions with what reads the answers to them."""

    name: str
    asked: Sequence[Asked]
    #: ``None``: there is no answer that a reader could give
    reader: Reader | None
    #: what compressors are made from: an index has its own language model
    parts: Parts


def levels(name: str) -> Sequence[float | None]:
    """The shares at which a compressor is measured."""
    return LEVELS.get(name, TOPS if name in CASCADES else OWN)


def names(only: Sequence[str]) -> Iterator[str]:
    """Yield the names to measure, in the order of the tables."""
    for name in ("whole", "chance", *COMPRESSORS, *CASCADES):
        if not only or name in only:
            yield name


def made(name: str, parts: Parts) -> Compressor | Rewriter:
    """The compressor of a name."""
    if name == Whole.name:
        return Whole()
    return Chance() if name == Chance.name else make(name, parts)


async def run(
    name: str, sets: Sequence[Set], folder: Path, complete: Complete, *, again: bool
) -> str | None:
    """Measure one compressor where it is not measured yet; why it cannot be, if so."""
    for one in sets:
        compressor: Compressor | Rewriter | None = None
        kept = Kept(folder / one.name / f"{name}.jsonl")
        if again:
            kept.forget()
        for keep in levels(name):
            lacking = kept.lacking(one.asked[: LIMITS.get((one.name, name))], keep)
            if not lacking:
                continue
            began = time.perf_counter()
            try:
                if compressor is None:
                    compressor = made(name, one.parts)
                    # what is loaded when it is first asked is not counted
                    await measure(compressor, one.asked[:1], keep, complete, None)
                for at in range(0, len(lacking), BATCH):
                    batch = lacking[at : at + BATCH]
                    kept.add(await measure(compressor, batch, keep, complete, one.reader))
            except PosologyError as error:
                return str(error).splitlines()[0]
            print(
                f"{one.name}: {name} at {keep}: {time.perf_counter() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return None


def collected(
    one: Set, folder: Path, only: Sequence[str]
) -> dict[tuple[str, float | None], list[Row]]:
    """Everything that is measured on a set."""
    found = {}
    for name in names(only):
        kept = Kept(folder / one.name / f"{name}.jsonl")
        for keep in levels(name):
            found[name, keep] = kept.rows(one.asked, keep)
    return found


def report(sets: Sequence[Set], folder: Path, only: Sequence[str]) -> None:
    """Print a table a set, and draw the fronts."""
    drawn = {}
    now = sources()
    for one in sets:
        found = points(collected(one, folder, only), one.asked)
        drawn[one.name] = found
        aside = sum(asked.aside for asked in one.asked)
        print(
            f"\n## {one.name}: {len(one.asked)} questions, {aside} of them about documents that the pruner "
            "has not seen\n"
        )
        print("\n".join(table(found, pooled.prices())))
        print(f"\nThe same question at the same level, {BASE} taken off:\n")
        print("\n".join(against(found, BASE)))
        unseen = [asked for asked in one.asked if asked.aside]
        if 0 < len(unseen) < len(one.asked):
            print("\nOf documents that the pruner has not seen alone:\n")
            part = replace(one, asked=unseen)
            held = points(collected(part, folder, only), unseen)
            print("\n".join(table(held, pooled.prices())))
        compressors = [p for p in found if p.name not in (Whole.name, Chance.name)]
        if old := {p.name for p in compressors if any(row.sources != now for row in p.rows)}:
            print(
                f"\nMeasured with other sources than these: {', '.join(sorted(old))}; --again measures anew"
            )
    if not only:
        draw(drawn, FIGURE)
        print(f"\ndrawn: {FIGURE}")


def learned(index: Index) -> NgramScorer:
    """The language model that annotated an index."""
    kept = read_learned(index.connection)
    assert kept is not None
    scorer = NgramScorer()
    scorer.restore(kept.data)
    return scorer


async def experiment(given: Given) -> None:
    """Measure and report."""
    pool = pooled.open_pool(given.data, given.work)
    encoder = pooled.CachedEncoder(pool.embedder, kept=6_000)
    folder = given.work / f"compressors-{pool.key}"
    remembered = folder / "memory.sqlite"
    if given.again and not given.only:
        remembered.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    memory = SqliteMemory(remembered)

    def parts(index: Index) -> Parts:
        return Parts(
            embedder=lambda: pool.embedder,
            models=dict(pair.split("=", 1) for pair in given.model),
            memory=lambda: memory,
            scorer=lambda: learned(index),
        )

    asked = await squad(pool, given.data, given.questions)
    sets = [Set(name="squad", asked=asked, reader=Reader(encoder), parts=parts(pool.index))]
    if given.claims:
        claims, abstracts = scifact(given.data, given.work, pool.embedder, given.claims)
        sets.append(Set(name="scifact", asked=claims, reader=None, parts=parts(abstracts)))
    complete = ExtractiveReader(encoder, pooled.counter())
    missing = {}
    for name in names(given.only):
        why = await run(name, sets, folder, complete, again=given.again)
        if why is not None:
            missing[name] = why
    report(sets, folder, given.only)
    for name, why in missing.items():
        print(f"not measured: {name}: {why}")
    for line in UNMEASURED:
        print(f"not measured: {line}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """The command line."""

    data: Path
    work: Path
    questions: int
    claims: int
    only: Sequence[str]
    model: Sequence[str]
    again: bool


def main(argv: list[str] | None = None) -> None:
    """Print the tables and draw the figure."""
    parser = pooled.arguments("evals.compressors", __doc__, questions=400)
    parser.add_argument("--claims", type=int, default=CLAIMS, help="of SciFact; 0: none")
    parser.add_argument("--only", nargs="*", default=[], help="names of compressors")
    parser.add_argument(
        "--model", action="append", default=[], help="NAME=FOLDER: weights of a compressor"
    )
    parser.add_argument("--again", action="store_true", help="measure anew what is kept")
    given = parser.parse_args(argv)
    need(given.data, *FILES)
    anyio.run(
        experiment,
        Given(
            data=given.data,
            work=given.work,
            questions=given.questions,
            claims=given.claims,
            only=given.only,
            model=given.model,
            again=given.again,
        ),
    )


if __name__ == "__main__":
    main()
