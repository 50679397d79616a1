"""Trains the packaged head for roles of sentences: background, aim, methods, results, conclusion.

``python -m training.roles --data DIR --work DIR [--write]``. Without ``--write`` the packaged file
stays. Vectors are kept in ``--work``, lot by lot, so an interrupted run continues. On two cores some ten minutes, most of
them for the vectors. Equal to the digest on processors of one kind. Figures:
``posology/text/data/MODEL_CARD.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.text.roles.head import BESIDE, FILE, PLACES, ROLES, WORDS, Told, dump, tell
from training.gold import DATA, WORK
from training.roles.cases import MOST, Abstract, abstracts
from training.roles.vectors import Vectors, encode

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

#: size of a sentence's hidden vector
HIDDEN = 128
#: abstracts a step, passes over all of them, and the largest rate of learning
BATCH, EPOCHS, RATE = 32, 8, 2e-3
#: shares that are zeroed in training: of a vector's numbers and hidden ones, and of sentences' words
DROPPED, WORDLESS = 0.2, 0.15
#: share of abstracts of which only a part is shown
CUT = 0.15


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Example:
    """An abstract as the network reads it."""

    #: shape ``(n, dim)``, int8
    vectors: NDArray[np.int8]
    told: Told
    #: place of each sentence's role in :data:`ROLES`; -1: unknown
    roles: NDArray[np.int64]

    def part(self, first: int, end: int) -> Example:
        """Return some of its sentences; their places stay those of the whole, in numbers that say so."""
        told = Told(
            places=self.told.places[first:end],
            words=self.told.words[first:end],
            allowed=self.told.allowed[first:end],
        )
        return Example(vectors=self.vectors[first:end], told=told, roles=self.roles[first:end])


def examples(labelled: Sequence[Abstract], vectors: Vectors) -> list[Example]:
    """Return abstracts as the network reads them."""
    return [
        Example(
            vectors=of,
            told=tell(one.passage.text, one.sentences),
            roles=np.array([-1 if r is None else ROLES.index(r) for r in one.roles], np.int64),
        )
        for one, of in zip(labelled, vectors.of, strict=True)
    ]


def fit(known: Sequence[Example], *, epochs: int = EPOCHS, seed: int = 7) -> dict[str, Any]:
    """Return the weights of :class:`~posology.text.roles.head.RoleHead` after training on examples."""
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    weights = _begin(known[0].vectors.shape[1])
    optimiser = torch.optim.AdamW(
        [
            {"params": [weights["words"]], "weight_decay": 0.0},
            {"params": [w for n, w in weights.items() if n != "words"], "weight_decay": 0.02},
        ],
        lr=RATE,
    )
    steps = epochs * -(-len(known) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=RATE, total_steps=steps)
    for epoch in range(epochs):
        total = 0.0
        for batch in _batches(known, rng):
            optimiser.zero_grad()
            loss = _loss(weights, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        print(f"pass {epoch + 1} of {epochs}: loss {total / len(known):.3f}", file=sys.stderr)
    return {name: weight.detach().numpy() for name, weight in weights.items()}


def _begin(dim: int) -> dict[str, torch.Tensor]:
    import torch

    seen = (2 * BESIDE + 1) * HIDDEN
    shapes = {
        "vector": (dim, HIDDEN),
        "place": (PLACES, HIDDEN),
        "first": (seen, HIDDEN),
        "second": (seen, HIDDEN),
        "out": (HIDDEN, len(ROLES)),
    }
    weights = {name: torch.randn(shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    weights["words"] = torch.randn(WORDS, HIDDEN) * 0.05
    for name in ("bias", "first_bias", "second_bias"):
        weights[name] = torch.zeros(HIDDEN)
    weights["out_bias"] = torch.zeros(len(ROLES))
    weights["chain"] = torch.zeros(len(ROLES), len(ROLES))
    weights["ends"] = torch.zeros(2, len(ROLES))
    return {name: weight.requires_grad_() for name, weight in weights.items()}


def _batches(known: Sequence[Example], rng: np.random.Generator) -> Iterator[list[Example]]:
    order = rng.permutation(len(known))
    for start in range(0, len(order), BATCH):
        batch = [known[i] for i in order[start : start + BATCH]]
        yield [_cut(one, rng) if rng.random() < CUT else one for one in batch]


def _cut(one: Example, rng: np.random.Generator) -> Example:
    n = len(one.roles)
    length = int(rng.integers(max(n // 2, 1), n + 1))
    first = int(rng.integers(n - length + 1))
    return one.part(first, first + length)


def _loss(weights: dict[str, Any], batch: Sequence[Example]) -> torch.Tensor:
    """Return the mean negative log likelihood of the known roles, summed over those that are not known."""
    import torch

    longest = max(len(one.roles) for one in batch)
    mask = torch.zeros(len(batch), longest, dtype=torch.bool)
    roles = torch.full((len(batch), longest), -1)
    for k, one in enumerate(batch):
        mask[k, : len(one.roles)] = True
        roles[k, : len(one.roles)] = torch.from_numpy(one.roles)
    scores = _scores(weights, batch, mask)
    fits = (roles[..., None] < 0) | (roles[..., None] == torch.arange(len(ROLES)))
    known = _total(weights, scores.masked_fill(~fits, -1e4), mask)
    return (_total(weights, scores, mask) - known).sum() / len(batch)


def _scores(weights: dict[str, Any], batch: Sequence[Example], mask: torch.Tensor) -> torch.Tensor:
    """Return the scores of :meth:`~posology.text.roles.head.RoleHead.scores`, zero beyond the ends of abstracts."""
    import torch
    from torch.nn.functional import dropout, embedding_bag, pad

    words = [rows for one in batch for rows in one.told.words]
    sizes = torch.tensor([len(rows) for rows in words])
    starts = torch.cumsum(sizes, 0) - sizes
    flat = torch.from_numpy(np.concatenate(words))
    said = embedding_bag(flat, weights["words"], starts, mode="sum")
    said = said / sizes.clamp(min=1).sqrt()[:, None]
    said = said * (torch.rand(len(said), 1) >= WORDLESS)
    vectors = torch.from_numpy(np.concatenate([one.vectors for one in batch])).float() / 127
    placed = torch.from_numpy(np.concatenate([one.told.places for one in batch]))
    inside = dropout(vectors, DROPPED) @ weights["vector"] + placed @ weights["place"]
    inside = torch.relu(inside + said + weights["bias"])
    hidden = torch.zeros(*mask.shape, HIDDEN).masked_scatter(mask[..., None], inside)
    hidden = dropout(hidden, DROPPED)
    for layer in ("first", "second"):
        padded = pad(hidden, (0, 0, BESIDE, BESIDE))
        n = mask.shape[1]
        seen = torch.cat([padded[:, k : k + n] for k in range(2 * BESIDE + 1)], dim=2)
        more = torch.relu(seen @ weights[layer] + weights[f"{layer}_bias"])
        hidden = (hidden + dropout(more, DROPPED)) * mask[..., None]
    scores: torch.Tensor = hidden @ weights["out"] + weights["out_bias"]
    return scores


def _total(weights: dict[str, Any], scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of the sum over all sequences of roles, of each abstract."""
    import torch

    chain, ends = weights["chain"], weights["ends"]
    total = scores[:, 0] + ends[0]
    for i in range(1, scores.shape[1]):
        further = scores[:, i] + torch.logsumexp(total[:, :, None] + chain, dim=1)
        total = torch.where(mask[:, i, None], further, total)
    return torch.logsumexp(total + ends[1], dim=1)


def main() -> None:
    """Train the head; write it with ``--write``."""
    parser = argparse.ArgumentParser(prog="training.roles", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=WORK / "roles", help="vectors, and the model")
    parser.add_argument("--abstracts", type=int, default=MOST, help="at most")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--out", type=Path, help="file to write; default: none")
    parser.add_argument("--write", action="store_true", help="replace the packaged file")
    given = parser.parse_args()
    labelled = abstracts(given.data, given.abstracts)
    vectors = encode(labelled, given.work)
    known = [
        one
        for one, source in zip(examples(labelled, vectors), labelled, strict=True)
        if source.part == "train"
    ]
    content = dump(vectors.embedder, fit(known, epochs=given.epochs))
    print(f"{hashlib.sha256(content).hexdigest()}, {len(content):,} bytes, {len(known)} abstracts")
    for file in (given.out, FILE if given.write else None):
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


if __name__ == "__main__":
    main()
