"""Measures whether roles of sentences are right, on documents that the head was not trained on.

``python -m evals.roles --data DIR --work DIR [--head FILE] [--pubmedqa]``

*By heading and words* counts a sentence of an opening section as aim or background by what it says, as the head was
trained (``training.roles.cases``); *by heading alone* takes the author's heading as it is. Beside
the head stands a linear model over the vectors of a sentence and its neighbours and its place, learned from 1,200 of the
training abstracts. Intervals are 95 % bootstrap intervals over documents, 1,000 draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.text.roles.head import FILE, ROLES, RoleHead, tell
from training.gold import DATA, WORK
from training.roles.cases import MOST, Abstract, abstracts, pubmedqa
from training.roles.training import Example, examples
from training.roles.vectors import encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: abstracts that the linear model learns from, and steps of its descent
LEARNED, STEPS = 1_200, 300
DRAWS = 1_000
_KINDS = len(ROLES)


def confusion(truth: NDArray[np.int64], said: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return counts of true roles (rows) by said ones; sentences without a true role are left out."""
    known = truth >= 0
    pairs = truth[known] * _KINDS + said[known]
    return np.bincount(pairs, minlength=_KINDS**2).reshape(_KINDS, _KINDS)


def f1(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return F1 of each role, last axis, from confusions in the last two."""
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    both = counts.sum(axis=-1) + counts.sum(axis=-2)
    found: NDArray[np.float64] = 2 * right / np.maximum(both, 1)
    return found


def interval(counts: NDArray[np.int64], seed: int = 1) -> tuple[float, float]:
    """Return the interval of the macro F1 from the confusions of documents, shape ``(documents, 5, 5)``."""
    rng = np.random.default_rng(seed)
    n = len(counts)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
    macro = f1(np.tensordot(draws, counts, axes=1)).mean(axis=1)
    low, high = np.quantile(macro, (0.025, 0.975))
    return float(low), float(high)


def beside(one: Example) -> NDArray[np.float32]:
    """Return what the linear model reads: the vectors of a sentence and its neighbours, its place, and 1."""
    vectors = one.vectors.astype(np.float32) / 127
    padded = np.pad(vectors, ((1, 1), (0, 0)))
    n = len(vectors)
    ones = np.ones((n, 1), np.float32)
    return np.concatenate([padded[:-2], vectors, padded[2:], one.told.places[:, :8], ones], axis=1)


def linear(known: Sequence[Example]) -> NDArray[np.float32]:
    """Return the weights of a softmax regression, shape ``(features, 5)``."""
    import torch

    torch.manual_seed(0)
    inputs = torch.from_numpy(np.concatenate([beside(one) for one in known]))
    truth = torch.from_numpy(np.concatenate([one.roles for one in known]))
    weights = torch.zeros(inputs.shape[1], _KINDS, requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=0.05)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(inputs @ weights, truth, ignore_index=-1)
        (loss + 1e-5 * weights.square().sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    found: NDArray[np.float32] = weights.detach().numpy()
    return found


def show(name: str, truth: Sequence[NDArray[np.int64]], said: Sequence[NDArray[np.int64]]) -> None:
    """Print one table."""
    counts = np.stack([confusion(t, s) for t, s in zip(truth, said, strict=True)])
    whole = counts.sum(axis=0)
    each = f1(whole)
    low, high = interval(counts)
    right = np.trace(whole) / whole.sum()
    print(
        f"\n{name}: macro F1 {each.mean():.3f} [{low:.3f}, {high:.3f}], accuracy {right:.3f}, "
        f"{whole.sum():,} sentences of {len(counts):,} documents"
    )
    print("| role | precision | recall | F1 | " + " | ".join(f"said {r}" for r in ROLES) + " |")
    print("| --- |" + " ---: |" * (3 + _KINDS))
    for place, role in enumerate(ROLES):
        precision = whole[place, place] / max(whole[:, place].sum(), 1)
        recall = whole[place, place] / max(whole[place].sum(), 1)
        said_as = " | ".join(f"{count:,}" for count in whole[place])
        print(f"| {role} | {precision:.3f} | {recall:.3f} | {each[place]:.3f} | {said_as} |")


def _headed(one: Abstract) -> NDArray[np.int64]:
    return np.array([-1 if r is None else ROLES.index(r) for r in one.by_heading], np.int64)


def main() -> None:
    """Print macro F1, accuracy, confusion and time."""
    parser = argparse.ArgumentParser(prog="evals.roles", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=WORK / "roles", help="vectors, and the model")
    parser.add_argument("--abstracts", type=int, default=MOST, help="at most")
    parser.add_argument("--head", type=Path, default=FILE)
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--pubmedqa", action="store_true", help="also on PubMedQA's 500 abstracts")
    given = parser.parse_args()
    labelled = abstracts(given.data, given.abstracts)
    known = examples(labelled, encode(labelled, given.work))
    pairs = list(zip(labelled, known, strict=True))
    aside = [(source, one) for source, one in pairs if source.part == given.part]
    head = RoleHead.read(given.head)
    began = perf_counter()
    said = [
        head.probabilities(tell_again(source), one.vectors).argmax(axis=1) for source, one in aside
    ]
    taken = (perf_counter() - began) / len(aside) * 1000
    truth, headed = [one.roles for _, one in aside], [_headed(source) for source, _ in aside]
    show(f"head {head.name}, by heading and words", truth, said)
    show(f"head {head.name}, by heading alone", headed, said)
    weights = linear([one for source, one in pairs if source.part == "train"][:LEARNED])
    plain = [(beside(one) @ weights).argmax(axis=1) for _, one in aside]
    show("linear model, by heading and words", truth, plain)
    show("linear model, by heading alone", headed, plain)
    if given.pubmedqa:
        asked = pubmedqa(given.data)
        read = examples(asked, encode(asked, given.work))
        said = [head.probabilities(one.told, one.vectors).argmax(axis=1) for one in read]
        show("PubMedQA, by label and words", [one.roles for one in read], said)
        show("PubMedQA, by label alone", [_headed(source) for source in asked], said)
    print(f"\n{taken:.2f} ms an abstract, words included")


def tell_again(source: Abstract) -> Any:
    """Return what the head reads of a text, made anew so that it is timed."""
    return tell(source.passage.text, source.sentences)


if __name__ == "__main__":
    main()
