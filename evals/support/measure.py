"""Measures the check of support on claims aside: what is said of right, wrong and silent ones, and the judge's calibration.

Usage: ``python -m evals.support [--data PATH] [--part dev|test] [--judge FILE ...] [--rules] [--named] [--limits]``.

Claims of documents that neither training nor calibration of the judge has seen: those written beside abstracts
(``claims``), SciFact's beside each marked rationale, HealthVer's beside its evidence. Each is checked as a sentence of an
answer that cites these sentences. For each set:

- the judge alone: balanced accuracy of *supports* at probability .5 (mean of recall and specificity), expected calibration
  error of that probability in ten bins of equal width (Naeini et al. 2015);
- as shown, by rules and judge with its limits: recall and precision of *supported* and of *contradicted*, right claims that
  are called contradicted, and wrong or silent ones that are called supported;
- by rule, how often right, wrong and silent claims fail it;
- of the written claims, both by kind of error and by writer.

``--named`` has a reply name the sentences, so that the guard may drop them, instead of citing them all.
``--limits`` prints the least probabilities of :mod:`strategies.support.check` that dev documents lead to, instead.

Intervals are 95 % bootstrap intervals over documents (HealthVer: claims).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evals.support.claims import FILES, Gold, healthver, scifact, written
from orchestrator.environment import prepare_libraries
from orchestrator.models import Models
from posology.reading.judge import Judge
from posology.seams import SupportJudge
from posology.types import (
    Answer,
    Backing,
    Excerpt,
    Rule,
    SentenceSupport,
    Stance,
    Statement,
)
from prompts.answer import Said
from strategies.citing import state
from strategies.support.check import cases_of, checked, probabilities
from training.gold import need

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Measure = Callable[[NDArray[np.float64]], float]

#: least precision of a label on dev documents, and the most right claims that may be called contradicted
PRECISION, HARM = 0.90, 0.02
_DRAWS = 2_000
_BINS = 10


def judge_of() -> SupportJudge | None:
    """Return the packaged judge; ``None``: it is not installed."""
    return Models(None).judge()


def supports(
    given: Sequence[Gold], judge: SupportJudge | None, *, named: bool = False
) -> list[SentenceSupport]:
    """Return the support of claims by the sentences behind them, as the check of answers finds it.

    Args:
        given: the claims.
        judge: ``None``: rules alone.
        named: whether a reply names the sentences, which the guard may drop.
    """
    found = []
    for one in given:
        answered = _named(one) if named else _answered(one)
        # what a question names is not invented
        made = checked(*answered, "" if named else one.claim, lambda: judge).support
        assert made is not None, one.claim
        found.append(made.sentences[0])
    return found


def _named(one: Gold) -> tuple[Answer, dict[str, Excerpt]]:
    """Return a claim as the answer to a reply that names the sentences behind it, and what it was shown."""
    said = Said(text=one.claim, sentences=[f"1.{place + 1}" for place in one.cited])
    stated = state([said], [one.excerpt])
    answer = Answer(
        text=stated.text,
        choice=None,
        citations=stated.verified.citations,
        dropped_quotes=len(stated.verified.dropped),
        strategy="direct",
        statements=stated.statements,
    )
    return answer, {one.excerpt.passage.id: one.excerpt}


def _answered(one: Gold) -> tuple[Answer, dict[str, Excerpt]]:
    """Return a claim as an answer that cites the sentences behind it, and what it was shown."""
    citations = one.citations
    claim = Statement(start=0, end=len(one.claim), citations=tuple(range(len(citations))))
    answer = Answer(
        text=one.claim,
        choice=None,
        citations=citations,
        dropped_quotes=0,
        strategy="direct",
        statements=(claim,),
    )
    return answer, {one.excerpt.passage.id: one.excerpt}


def limits(given: Sequence[Gold], judge: SupportJudge) -> tuple[float, float]:
    """Return the least probabilities of support and of contradiction from which on labels are as precise as they must be.

    Args:
        given: claims that the judge was not trained on; those that repeat their sentences are not judged.
        judge: gives probabilities.
    """
    rows = []
    for one in given:
        cases = cases_of(*_answered(one), one.claim)
        assert cases is not None, one.claim
        (found,) = probabilities(cases, judge)
        if found is not None:
            rows.append((*found, one.supports, one.stance is Stance.CONTRADICTS))
    supports, contradicts, right, wrong = np.array(rows, float).T

    def least(likely: NDArray[np.float64], true: NDArray[np.float64], harm: float) -> float:
        for percent in range(30, 100):
            called = likely >= percent / 100
            if (
                called.any()
                and true[called].mean() >= PRECISION
                and called[right == 1].mean() <= harm
            ):
                return percent / 100
        return 1.0

    return least(supports, right, 1.0), least(contradicts, wrong, HARM)


def over_documents(values: Sequence[tuple[str, bool]], measure: Measure | None = None) -> str:
    """Return a share with its 95 % bootstrap interval over documents.

    Args:
        values: document and outcome of each case.
        measure: of the outcomes; ``None``: their mean.
    """
    return resampled(
        [name for name, _ in values],
        np.array([value for _, value in values], float),
        measure or (lambda some: float(some.mean())),
    )


def resampled(
    documents: Sequence[str],
    rows: NDArray[np.float64],
    measure: Measure,
) -> str:
    """Return a measure of rows with its 95 % bootstrap interval over documents."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(documents):
        groups[name].append(i)
    units = [np.array(some) for some in groups.values()]
    if not units or np.isnan(measure(rows)):
        return "–"
    rng = np.random.default_rng(0)
    drawn = [
        measure(rows[np.concatenate([units[i] for i in rng.integers(0, len(units), len(units))])])
        for _ in range(_DRAWS)
    ]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return f"{measure(rows):.3f} [{low:.3f}, {high:.3f}]"


def ece(given: NDArray[np.float64]) -> float:
    """Return the expected calibration error from rows of a probability and whether it came true."""
    bins = np.minimum((given[:, 0] * _BINS).astype(int), _BINS - 1)
    parts = [given[bins == b] for b in range(_BINS)]
    return float(
        sum(len(p) / len(given) * abs(p[:, 0].mean() - p[:, 1].mean()) for p in parts if len(p))
    )


def _precision(given: NDArray[np.float64]) -> float:
    called = given[given[:, 0] == 1]
    return float(called[:, 1].mean()) if len(called) else float("nan")


def _recall(given: NDArray[np.float64]) -> float:
    marked = given[given[:, 1] == 1]
    return float(marked[:, 0].mean()) if len(marked) else float("nan")


def _balanced(given: NDArray[np.float64]) -> float:
    right, called = given[:, 1] == 1, given[:, 0]
    if right.all() or not right.any():
        return float("nan")
    return float((called[right].mean() + 1 - called[~right].mean()) / 2)


def report(given: Sequence[Gold], found: Sequence[SentenceSupport]) -> None:
    """Print what is said of claims."""
    names = [one.document for one in given]
    right = np.array([one.stance is Stance.SUPPORTS for one in given], float)
    wrong = np.array([one.stance is Stance.CONTRADICTS for one in given], float)
    supported = np.array([one.backing is Backing.SUPPORTED for one in found], float)
    contradicted = np.array([one.backing is Backing.CONTRADICTED for one in found], float)
    odds = np.array([np.nan if one.probability is None else one.probability for one in found])
    judged = np.flatnonzero(~np.isnan(odds))
    units = [names[i] for i in judged]

    def line(
        name: str, some: Sequence[str], *columns: NDArray[np.float64], measure: Measure
    ) -> None:
        print(f"  {name:38} {resampled(some, np.stack(columns, 1), measure)}")

    counts = ", ".join(
        f"{int(some.sum())} {name}" for name, some in (("right", right), ("wrong", wrong))
    )
    print(f"{given[0].origin}, {len(given)} claims ({counts}) of {len(set(names))} documents")
    if len(judged):
        likely, true = odds[judged], right[judged]
        line(
            "judge: balanced accuracy",
            units,
            (likely >= 0.5).astype(float),
            true,
            measure=_balanced,
        )
        line("judge: ECE of supports", units, likely, true, measure=ece)
    line("supported: recall", names, supported, right, measure=_recall)
    line("supported: precision", names, supported, right, measure=_precision)
    line("contradicted: recall", names, contradicted, wrong, measure=_recall)
    line("contradicted: precision", names, contradicted, wrong, measure=_precision)
    line("right, called contradicted", names, contradicted, right, measure=_recall)
    line(
        "right, a difference or no quote",
        names,
        np.array([not one.stands for one in found], float),
        right,
        measure=_recall,
    )
    line("wrong, called supported", names, supported, wrong, measure=_recall)
    if (silent := 1 - right - wrong).any():
        line("silent, called supported", names, supported, silent, measure=_recall)
    marks = {
        rule: np.array([any(d.rule is rule for d in one.differences) for one in found], float)
        for rule in Rule
    }
    stands = np.array([bool(one.citations) for one in found], float)
    shown = np.max([marked for rule, marked in marks.items() if rule.objects], axis=0)
    every = {"a sentence stands": stands, "a difference is shown": shown} | marks
    for name, marked in every.items():
        parts = " ".join(
            f"{kind} {marked[some == 1].mean():.3f}"
            for kind, some in (("right", right), ("wrong", wrong), ("silent", silent))
            if some.any()
        )
        print(f"  {name:26} {parts}")
    for how in sorted({one.how for one in given if one.how}):
        here = np.array([one.how == how for one in given])
        print(
            f"  {how:26} {int(here.sum()):4}  called supported {supported[here].mean():.3f}"
            f", contradicted {contradicted[here].mean():.3f}"
        )
    for writer in sorted({one.writer for one in given if one.writer and len(judged)}):
        here = np.array([one.writer == writer for one in given]) & ~np.isnan(odds)
        both = np.stack([(odds >= 0.5)[here], right[here]], 1).astype(float)
        print(
            f"  writer {writer}: judge's balanced accuracy {_balanced(both):.3f} ({int(here.sum())})"
        )


def main(argv: list[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        prog="evals.support",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--judge", type=Path, nargs="*", help="files in place of the packaged one")
    parser.add_argument("--rules", action="store_true", help="without the judge")
    parser.add_argument(
        "--named", action="store_true", help="sentences are named, and the guard may drop them"
    )
    parser.add_argument("--limits", action="store_true", help="print those that --part leads to")
    options = parser.parse_args(argv)
    if options.rules and options.limits:
        parser.error("--limits are the judge's: omit --rules")
    need(options.data, *FILES)
    prepare_libraries()
    judges: list[SupportJudge | None] = [None] if options.rules else [judge_of()]
    if options.judge:
        judges = [Judge(one.read_bytes()) for one in options.judge]
    sets = [some(options.data) for some in (written, scifact, healthver)]
    for judge in judges:
        print(f"judge: {'none, rules alone' if judge is None else judge.name}")
        for every in sets:
            given = [one for one in every if one.part == options.part]
            if options.limits and judge is not None:
                print(given[0].origin, *limits(given, judge))
                continue
            report(given, supports(given, judge, named=options.named))
    return 0
