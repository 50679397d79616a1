"""BriefContext, supplementary table 4: does the preflight check predict a buried key document?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evals.papers.literature import pool_of
from evals.papers.rows import Result
from evals.papers.suite import Given, Item, Published, Suite, Values, by_arm
from policies.calibration import packaged
from policies.preflight import SPOTLIGHT
from policies.preflight import Published as Rule
from policies.preflight_features import iou
from posology.index.search.bm25 import rerank
from posology.types import Passage
from training.gold import pubmedqa, scifact
from training.preflight_cases import FILES

SETS = {"PubMedQA": pubmedqa, "SciFact": scifact}
DEPTHS = (8, 16)
#: counts of the paper, by the ratios of its text: flagged rightly, wrongly, not flagged wrongly, rightly
TP, FP, FN, TN = 426, 423, 34, 235
_RULE = Rule()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieved:
    """A question with the passages nearest to it."""

    text: str
    passages: tuple[Passage, ...]
    #: ids of its key documents
    keys: frozenset[str]


class Preflight(Suite):
    """Precision, recall and F1 of the published rule's flag, beside the reach of BriefContext at once."""

    name = "briefcontext-preflight"
    title = "precision, recall and F1 of the flag, beside the reach of the action"
    paper, place = "BriefContext", "table S4"
    files = FILES
    questions = 1_000
    reads = False
    measures: ClassVar[Mapping[str, str]] = {
        "issue": f"share of questions with no key document among the first {SPOTLIGHT}",
        "flagged": "share of questions that are flagged; with the published rule, these all go to BriefContext",
        "precision": "share of flagged questions that have the issue",
        "recall": "share of issues that are flagged",
        "reach": "share of the issues that BriefContext can mend (the key document is among the k) that are flagged",
    }
    published = tuple(
        Published(
            arm=f"{name}, k 16",
            measure=measure,
            value=value,
            of="MedCPT over PubMed; PubMedQA and BioASQ",
            source="section 2.5 and table S4",
        )
        for name in SETS
        for measure, value in (
            ("issue", (TP + FN) / (TP + FP + FN + TN)),
            ("flagged", (TP + FP) / (TP + FP + FN + TN)),
            ("precision", TP / (TP + FP)),
            ("recall", TP / (TP + FN)),
        )
    )
    differences = (
        "44,581 abstracts by all-MiniLM-L6-v2, not 23.9 million by MedCPT; SciFact's claims in place of BioASQ's questions.",
        "Table S4 as printed has the false positives where the false negatives belong; the ratios in the text are used.",
        "BM25+ orders the passages for the rule; its IDF is positive for every word. The paper does not give its own.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return the questions of each set, at most so many, at both depths."""
        pool, vectors = pool_of(given.data)
        found = []
        for name, read in SETS.items():
            asked = read(given.data)[: given.questions]
            likeness = given.embed([one.text for one in asked]) @ vectors.T
            for place, (one, scores) in enumerate(zip(asked, likeness, strict=True)):
                near = [pool[at] for at in np.argsort(-scores, kind="stable")[: max(DEPTHS)]]
                found += [
                    Item(
                        question=f"{name} {place}",
                        arm=f"{name}, k {k}",
                        content=Retrieved(text=one.text, passages=tuple(near[:k]), keys=one.gold),
                    )
                    for k in DEPTHS
                ]
        return found

    def measured(self, item: Item) -> Values:
        """Return whether a question has the issue, and whether the rule flags it."""
        one: Retrieved = item.content
        dense = [passage.id for passage in one.passages]
        words = [hit.passage_id for hit in rerank(one.text, one.passages).hits]
        flagged = iou(dense, words, _RULE.n) <= _RULE.threshold
        issue = one.keys.isdisjoint(dense[:SPOTLIGHT])
        mendable = issue and not one.keys.isdisjoint(dense)
        return {
            "issue": float(issue),
            "flagged": float(flagged),
            "precision": float(issue) if flagged else None,
            "recall": float(flagged) if issue else None,
            "reach": float(flagged) if mendable else None,
        }

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield confusion matrices with F1, and the reach of the shipped predictor."""
        yield from ("", "## Confusion", "")
        yield "| arm | TP | FP | FN | TN | F1 |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        yield f"| the paper | {TP} | {FP} | {FN} | {TN} | {_f1(TP, FP, FN):.3f} |"
        for (_, arm), of in by_arm(rows).items():
            pairs = np.array([[row.values["flagged"], row.values["issue"]] for row in of], bool)
            yield f"| {arm} | {_confusion(pairs)} |"
        yield from ("", "## Reach of the shipped predictor", "")
        yield (
            "Held out when it was trained (`python -m evals.policy.preflight`), of both sets; `policy show` prints it. BriefContext at once "
            "is the action at that least probability."
        )
        yield ""
        yield "| order | k | least probability | share of questions | recall | of mendable |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for order, about in packaged().trained["orders"].items():
            for one in about["reach"]:
                mendable = "–" if one["mendable"] is None else f"{one['mendable']:.3f}"
                yield (
                    f"| {order} | {one['k']} | {one['least']:.3f} | {one['share']:.3f} | {one['recall']:.3f} | {mendable} |"
                )


def _f1(tp: float, fp: float, fn: float) -> float:
    return 2 * tp / max(2 * tp + fp + fn, 1)


def _confusion(pairs: np.ndarray) -> str:
    """Return counts and F1 of rows of flag and issue."""
    flag, issue = pairs.T
    tp, fp, fn = (flag & issue).sum(), (flag & ~issue).sum(), (~flag & issue).sum()
    found = np.random.default_rng(0).integers(0, len(pairs), (2_000, len(pairs)))
    drawn = [
        _f1((f & i).sum(), (f & ~i).sum(), (~f & i).sum())
        for f, i in ((flag[r], issue[r]) for r in found)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{tp} | {fp} | {fn} | {(~flag & ~issue).sum()} | {_f1(tp, fp, fn):.3f} [{low:.3f}, {high:.3f}]"
