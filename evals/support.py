"""Measures the check of support on claims aside: citations, verdicts, calibration.

Usage: ``python -m evals.support [--data PATH] [--rules]``.

On SciFact and HealthVer, claims of documents that neither training nor calibration of the judge has seen:

- citations: of the sentences of an abstract that a SciFact claim cites, those that are called supported for it, beside the
  rationales that people marked as its support; precision counts a neighbour within a marked group as right;
- verdicts: supports, contradicts, says nothing; balanced accuracy is the mean recall of the three, with the judge's
  likeliest verdict;
- calibration: expected calibration error of the probability of that verdict, in ten bins of equal width (Naeini et al.
  2015), and the share on which the check abstains (``unclear``);
- rules: the share of claims with gold support, of all parts, that fail each rule.

Intervals are 95 % bootstrap intervals over documents (SciFact) or claims (HealthVer).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.environment import prepare_libraries
from orchestrator.models import Models
from posology.seams import SupportJudge
from posology.text.sentences import split
from posology.types import (
    Answer,
    Backing,
    Citation,
    Excerpt,
    Passage,
    Sentence,
    SentenceSupport,
    Stance,
    Statement,
)
from strategies.support.check import checked, neighbourhood
from training.gold import rows
from training.pruner_cases import CLAIMS, POOL, fine_starts, part_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEALTHVER = "healthver_dev.jsonl.gz"
FILES = (CLAIMS, POOL, HEALTHVER)
_DRAWS = 2_000
_BINS = 10
_STANCES = list(Stance)
_LABELS = {"Supports": Stance.SUPPORTS, "Refutes": Stance.CONTRADICTS, "Neutral": Stance.SILENT}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gold:
    """A claim, sentences of a document, and what people say that they say of it."""

    #: unit of the bootstrap
    document: str
    claim: str
    excerpt: Excerpt
    #: places of the sentences that are cited for the claim, from 0
    cited: tuple[int, ...]
    stance: Stance
    #: whether neither training nor calibration has seen it
    aside: bool

    @property
    def supports(self) -> bool:
        """Whether the sentences support the claim."""
        return self.stance is Stance.SUPPORTS

    @property
    def around(self) -> str:
        """Title and text of the document."""
        return f"{self.excerpt.passage.title}\n{self.excerpt.passage.text}"

    def saying(self, claim: str) -> Gold:
        """Return the same sentences behind another claim."""
        return replace(self, claim=claim)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The cited sentences."""
        passage = self.excerpt.passage
        return tuple(
            Citation(
                passage_id=passage.id,
                start=(span := self.excerpt.sentences[i]).start,
                end=span.end,
                quote=span.of(passage.text),
            )
            for i in self.cited
        )


def scifact(data: Path) -> list[Gold]:
    """Return SciFact's claims with each group of rationale sentences."""
    return [
        replace(bare, cited=tuple(group), stance=stance)
        for bare, groups, stance in _cited(data)
        for group in groups
    ]


def sentences_of(data: Path) -> list[tuple[Gold, bool]]:
    """Return each sentence of the documents that SciFact's claims cite, and whether it is a marked support."""
    found = []
    for bare, groups, stance in _cited(data):
        marked = {i for group in groups for i in group} if stance is Stance.SUPPORTS else set()
        found += [
            (replace(bare, cited=(i,)), i in marked) for i in range(len(bare.excerpt.sentences))
        ]
    return found


def _cited(data: Path) -> list[tuple[Gold, list[list[int]], Stance]]:
    docs = {row["id"]: row for row in rows(data / POOL) if row["source"] == "scifact"}
    found: list[tuple[Gold, list[list[int]], Stance]] = []
    for row in rows(data / CLAIMS):
        for number in map(str, row["cited_doc_ids"]):
            doc = docs.get(f"scifact:{number}")
            if doc is None:
                continue
            evidence = row["evidence"].get(number)
            excerpt = _excerpt(doc["id"], doc.get("title") or "", doc["text"])
            bare = Gold(
                document=number,
                claim=row["claim"],
                excerpt=excerpt,
                cited=(),
                stance=Stance.SILENT,
                aside=part_of(number) == "test",
            )
            if evidence is None:
                found.append((bare, [], Stance.SILENT))
                continue
            told = evidence["label"] == "SUPPORT"
            groups = [g for g in evidence["sentences"] if g and max(g) < len(excerpt.sentences)]
            found.append((bare, groups, Stance.SUPPORTS if told else Stance.CONTRADICTS))
    return found


def _excerpt(name: str, title: str, text: str) -> Excerpt:
    """Return a document with its sentences as those who marked them counted them."""
    starts = fine_starts(text, split(text))
    ends = [*starts[1:], len(text)]
    spans = tuple(
        Sentence(start=a, end=a + len(text[a:b].rstrip()))
        for a, b in zip(starts, ends, strict=True)
    )
    return Excerpt(passage=Passage(id=name, title=title, text=text), sentences=spans)


def healthver(data: Path) -> list[Gold]:
    """Return HealthVer's claims, each with one evidence."""
    return [
        Gold(
            document=row["claim"],
            claim=row["claim"],
            excerpt=Excerpt(
                passage=Passage(id="healthver", text=one["text"]),
                sentences=(Sentence(start=0, end=len(one["text"])),),
            ),
            cited=(0,),
            stance=_LABELS[one["label"]],
            aside=part_of(f"healthver:{row['claim']}") == "test",
        )
        for row in rows(data / HEALTHVER)
        for one in row["evidence"]
        if one["text"].strip()
    ]


def judge_of() -> SupportJudge | None:
    """Return the packaged judge; ``None``: it is not installed."""
    return Models(None).judge()


def supports(given: Sequence[Gold], judge: SupportJudge | None) -> list[SentenceSupport]:
    """Return the support of claims by the sentences behind them, as the check of answers finds it."""
    found = []
    for one in given:
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
        excerpts = {one.excerpt.passage.id: one.excerpt}
        made = checked(answer, excerpts, one.claim, lambda: judge).support
        assert made is not None, one.claim
        found.append(made.sentences[0])
    return found


def over_documents(
    values: Sequence[tuple[str, bool]],
    measure: Callable[[NDArray[np.float64]], float] | None = None,
) -> str:
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
    measure: Callable[[NDArray[np.float64]], float],
) -> str:
    """Return a measure of rows with its 95 % bootstrap interval over documents."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(documents):
        groups[name].append(i)
    units = [np.array(some) for some in groups.values()]
    if not units:
        return "–"
    rng = np.random.default_rng(0)
    drawn = [
        measure(rows[np.concatenate([units[i] for i in rng.integers(0, len(units), len(units))])])
        for _ in range(_DRAWS)
    ]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return f"{measure(rows):.3f} [{low:.3f}, {high:.3f}]"


def balanced(given: NDArray[np.float64]) -> float:
    """Return the mean recall of verdicts from rows of a true and a guessed one."""
    return float(
        np.mean([np.mean(given[given[:, 0] == s, 1] == s) for s in np.unique(given[:, 0])])
    )


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


def _citations(data: Path, judge: SupportJudge | None) -> None:
    aside = [(one, marked) for one, marked in sentences_of(data) if one.aside]
    found = supports([one for one, _ in aside], judge)
    table = np.array(
        [
            (one.backing is Backing.SUPPORTED, marked)
            for one, (_, marked) in zip(found, aside, strict=True)
        ],
        float,
    )
    names = [one.document for one, _ in aside]
    print(f"citations, SciFact aside, {len(aside)} sentences of {len(set(names))} documents")
    print(f"  precision {resampled(names, table, _precision)}")
    print(f"  recall    {resampled(names, table, _recall)}")


def _verdicts(name: str, given: Sequence[Gold], judge: SupportJudge) -> None:
    texts = [
        (one.claim, " ".join(neighbourhood(c, one.excerpt) for c in one.citations[:1]))
        for one in given
    ]
    odds = judge.judge(texts)
    truth = np.array([_STANCES.index(one.stance) for one in given])
    guess = odds.argmax(axis=1)
    names = [one.document for one in given]
    sure = odds.max(axis=1)
    backing = supports(given, judge)
    unclear = [(n, one.backing is Backing.UNCLEAR) for n, one in zip(names, backing, strict=True)]
    print(f"{name}, {len(given)} cases of {len(set(names))} documents or claims")
    print(
        f"  balanced accuracy {resampled(names, np.stack([truth, guess], 1).astype(float), balanced)}"
    )
    print(
        f"  ECE, 10 bins      {resampled(names, np.stack([sure, truth == guess], 1).astype(float), ece)}"
    )
    print(f"  abstains          {over_documents(unclear)}")


def _rules(name: str, given: Sequence[Gold]) -> None:
    found = supports([one for one in given if one.supports], None)
    counts = Counter(rule for one in found for rule in one.failed)
    parts = ", ".join(f"{rule} {n / len(found):.3f}" for rule, n in counts.most_common())
    print(f"rules that {len(found)} supported claims of {name} fail: {parts}")


def main(argv: list[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        prog="evals.support",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rules", action="store_true", help="without the judge")
    options = parser.parse_args(argv)
    if missing := [name for name in FILES if not (options.data / name).exists()]:
        sys.exit(
            f"{options.data} has no {missing[0]}. Pass --data with the folder of the data sets."
        )
    prepare_libraries()
    judge = None if options.rules else judge_of()
    print(f"judge: {'none, rules alone' if judge is None else judge.name}")
    _rules("SciFact", scifact(options.data))
    _rules("HealthVer", healthver(options.data))
    _citations(options.data, judge)
    if judge is not None:
        rationales = [one for one in _told(options.data) if one.aside]
        verdicts = [one for one in healthver(options.data) if one.aside]
        _verdicts("SciFact aside", rationales, judge)
        _verdicts("HealthVer aside", verdicts, judge)
        _verdicts("both", [*rationales, *verdicts], judge)
    return 0


def _told(data: Path) -> list[Gold]:
    """Return SciFact's rationales, and of each document that says nothing of a claim its middle sentence."""
    silent = [
        replace(bare, cited=(len(bare.excerpt.sentences) // 2,))
        for bare, groups, _ in _cited(data)
        if not groups and bare.excerpt.sentences
    ]
    return [*scifact(data), *silent]


if __name__ == "__main__":
    sys.exit(main())
