"""TCRA-LLM, figures 8 and 9: lengths of summaries, and the compression that words predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from evals.papers.suite import Given, Item, Suite, Values
from evals.papers.tcra.words import information, words_of
from training.gold import rows as read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evals.papers.rows import Result

FILE = "pubmedqa_train.jsonl.gz"
FOLDS = 5
AUTHORS = "authors' conclusions"


def predicted(
    features: NDArray[np.float64], rates: NDArray[np.float64], folds: int = FOLDS
) -> NDArray[np.float64]:
    """Return the rates that linear regressions on the other folds predict.

    Args:
        features: shape ``(n, F)``.
        rates: shape ``(n,)``.
        folds: number of parts.
    """
    with_one = np.column_stack([features, np.ones(len(features))])
    found = np.empty(len(rates))
    for part in np.array_split(np.random.default_rng(0).permutation(len(rates)), folds):
        others = np.setdiff1d(np.arange(len(rates)), part)
        weights, *_ = np.linalg.lstsq(with_one[others], rates[others], rcond=None)
        found[part] = with_one[part] @ weights
    return found


class Rate(Suite):
    """Compression of abstracts by their authors, and what predicts it."""

    paper = "TCRA-LLM"
    name = "tcra-rate"
    title = "lengths of summaries, and compression by length and entropy"
    place = "figures 8 and 9"
    files = (FILE,)
    questions = 500
    reads = False
    measures = MappingProxyType(
        {
            "length": "words of the abstract without its conclusion",
            "entropy": "bits of its words, mean",
            "information": "bits of its words, sum",
            "summary": "words of the conclusion",
            "rate": "words of the conclusion by words of the rest",
        }
    )
    differences = (
        (
            "No fine-tuned mT5 is at hand: summaries are authors' own conclusions of PubMedQA's abstracts. The three lengths of "
            "figure 8 (88, 46 and 21 words at 70, 50 and 30 %) need `posology compressor finetune` and a language model's training texts."
        ),
        "The regression is tested on the fold that it did not see; the paper does not say.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return the abstracts."""
        found = read(given.data / FILE)[: given.questions]
        bits = information(" ".join(row["contexts"]) for row in found)
        return [Item(question=row["pmid"], arm=AUTHORS, content=(row, bits)) for row in found]

    def measured(self, item: Item) -> Values:
        """Return length, entropy and rate of one abstract."""
        row, bits = item.content
        words, said = words_of(" ".join(row["contexts"])), words_of(row["long_answer"])
        own = [bits[word] for word in words if word in bits]
        return {
            "length": float(len(words)),
            "entropy": float(np.mean(own)) if own else None,
            "information": float(np.sum(own)),
            "summary": float(len(said)),
            "rate": len(said) / len(words) if words else None,
        }

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield the lengths, and the regression."""
        own = [row.values for row in rows if None not in row.values.values()]
        if len(own) < 2 * FOLDS:
            return

        def of(name: str) -> NDArray[np.float64]:
            return np.array([one[name] for one in own], float)

        yield from ("", "## Lengths (figure 8)", "")
        yield "| words | 10 % | median | 90 % |"
        yield "| --- | ---: | ---: | ---: |"
        for title, name in (("abstract", "length"), ("conclusion", "summary")):
            cells = " | ".join(f"{q:.0f}" for q in np.percentile(of(name), [10, 50, 90]))
            yield f"| {title} | {cells} |"
        rates = of("rate")
        found = predicted(np.column_stack([of("length"), of("entropy"), of("information")]), rates)
        off = found - rates
        explained = 1 - float((off**2).sum() / ((rates - rates.mean()) ** 2).sum())
        yield from ("", f"## Regression (figure 9), {FOLDS} folds", "")
        yield "| | correlation | RMSE | R² |"
        yield "| --- | ---: | ---: | ---: |"
        yield "| the paper, mT5 at 30 % | 0.31 | 0.114 | 0.096 |"
        yield (
            f"| here, authors' conclusions | {np.corrcoef(found, rates)[0, 1]:.2f} | {np.sqrt((off**2).mean()):.3f} "
            f"| {explained:.3f} |"
        )
