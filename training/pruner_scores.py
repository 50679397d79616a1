"""Features of cases, calibration of the threshold, and shares of gold sentences kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strategies.compression.late.codec import LateCodec
from strategies.compression.late.features import Asked, Coded, Weights, kind, observe
from strategies.compression.late.head import Head
from training.pruner_cases import Case

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.pruner_corpora import Corpus

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4)
#: Share of random passages that the threshold must empty.
EMPTIED = 0.96


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Recorded:
    """A case with the features of its sentences."""

    case: Case
    #: features, shape ``(sentences, features)``
    features: NDArray[np.float32]
    #: sentences of each passage
    sizes: NDArray[np.int64]
    #: whether each sentence is gold, and its characters, shape ``(sentences,)`` each
    gold: NDArray[np.bool_]
    chars: NDArray[np.int32]

    def of(
        self, places: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]:
        """Return features and sizes of some passages, and a mask of their sentences."""
        wanted = np.zeros(len(self.sizes), np.bool_)
        wanted[list(places)] = True
        rows = np.repeat(wanted, self.sizes)
        return self.features[rows], self.sizes[wanted], rows

    @property
    def main(self) -> list[int]:
        """Return the gold and the retrieved passages, without random ones."""
        most = 5 if self.case.origin.startswith("squad") else len(self.sizes)
        return [i for i, kind_ in enumerate(self.case.kinds[:most]) if kind_ != "random"]


def observed(
    case: Case, corpus: Corpus, codes: NDArray[np.uint8], codec: LateCodec, weights: Weights
) -> Recorded:
    """Return a case with its features."""
    bank, (tokens, whole) = corpus.bank, corpus.asked[case.question]
    spans = [slice(bank.first_sentence[p], bank.first_sentence[p + 1]) for p in case.passages]
    vectors = np.concatenate([bank.sentence_vectors[s] for s in spans]).astype(np.float32)
    sizes = np.array([len(bank.counts[p]) - 1 for p in case.passages])
    coded = Coded(
        codes=np.concatenate([codes[bank.first[p] : bank.first[p + 1]] for p in case.passages]),
        counts=np.concatenate([bank.counts[p] for p in case.passages]),
        sizes=sizes,
        cosines=vectors @ whole,
        of_passages=bank.vectors[list(case.passages)].astype(np.float32) @ whole,
    )
    asked = Asked(vectors=tokens.vectors, ids=tokens.ids, kind=kind(case.question))
    gold = [np.isin(np.arange(n), list(g)) for n, g in zip(sizes, case.gold, strict=True)]
    return Recorded(
        case=case,
        features=observe(asked, coded, codec, weights),
        sizes=sizes,
        gold=np.concatenate(gold),
        chars=np.concatenate([bank.chars[s] for s in spans]),
    )


def together(
    scores: NDArray[np.float32], chars: NDArray[np.int32], gold: NDArray[np.bool_]
) -> list[float]:
    """Return the shares of gold sentences kept at each of :data:`SHARES`, taken by score."""
    order = np.argsort(-scores, kind="stable")
    before = np.cumsum(chars[order]) - chars[order]
    total = chars.sum()
    return [float(gold[order[before < s * total]].sum() / gold.sum()) for s in SHARES]


def calibrate(head: Head, records: Sequence[Recorded]) -> tuple[float, float, float, float]:
    """Return threshold, share of the characters left, slope and offset, from the dev part.

    The threshold is the lowest that empties :data:`EMPTIED` of random passages, each alone.
    """
    from sklearn.linear_model import LogisticRegression

    logits, gold, alone, chars = [], [], [], []
    for record in records:
        if record.case.part != "dev":
            continue
        for i, kind_ in enumerate(record.case.kinds):
            if kind_ == "random":
                features, sizes, _ = record.of([i])
                alone.append(_logit(head(features, sizes)[0]).max())
                break
        if record.case.origin != "squad2":
            features, sizes, rows = record.of(record.main)
            logits.append(_logit(head(features, sizes)[0]))
            gold.append(record.gold[rows])
            chars.append(record.chars[rows])
    x, y, length = np.concatenate(logits), np.concatenate(gold), np.concatenate(chars)
    fitted = LogisticRegression(C=1e6).fit(x[:, None], y)
    slope, offset = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
    cut = float(np.quantile(alone, EMPTIED))
    left = float(length[x >= cut].sum() / length.sum())
    return 1 / (1 + float(np.exp(-(slope * cut + offset)))), left, slope, offset


def _logit(probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    p = np.clip(probabilities.astype(np.float64), 1e-12, 1 - 1e-7)
    return np.asarray(np.log(p / (1 - p)))
