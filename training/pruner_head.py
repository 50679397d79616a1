"""Training of the pruner's head: networks over the sentences of a passage, in torch."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from strategies.compression.late import head as heads
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.features import NAMES, Weights
from strategies.compression.late.head import COMPARED
from training.pruner_scores import Recorded

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

WIDTH = 40
DROPOUT = 0.1
BATCH = 48
#: Repetitions of small sets, and sets with incomplete gold, which weigh half.
REPEATED = {"scifact": 3, "covid": 2}
HALF = ("covid", "trials")
_PLACES = [NAMES.index(name) for name in COMPARED]


def fit_head(
    records: Sequence[Recorded], *, seed: int, epochs: int
) -> dict[str, NDArray[np.float32]]:
    """Train one network; return its weights by name, with ``mean`` and ``deviation`` of the features."""
    import torch
    from torch.nn import functional

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    seen = np.concatenate([r.features for r in records])
    spread = seen.std(axis=0) + 1e-3
    mean = np.concatenate([seen.mean(axis=0), np.full(len(_PLACES), -0.2)]).astype(np.float32)
    deviation = np.concatenate([spread, spread[_PLACES]]).astype(np.float32)
    w = _start(len(mean))
    order = [i for i, r in enumerate(records) for _ in range(REPEATED.get(r.case.origin, 1))]
    steps = epochs * (len(order) // BATCH + 1)
    optimiser = torch.optim.AdamW(w.values(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 3e-3, total_steps=steps + 1, pct_start=0.1
    )
    for _ in range(epochs):
        rng.shuffle(order)
        for begin in range(0, len(order), BATCH):
            x, y, there, group, weight = _batch(
                [records[i] for i in order[begin : begin + BATCH]], rng, mean, deviation
            )
            logits, scores = _forward(w, x, there)
            real = there > 0
            loss = functional.binary_cross_entropy_with_logits(
                logits[real], y[real], reduction="none"
            )
            total: Any = 4 * (loss * weight[:, None].expand_as(there)[real]).mean()
            gold = (y.sum(1) > 0).float()
            total = total + 0.5 * functional.binary_cross_entropy_with_logits(scores, gold)
            total = total + 0.5 * _listwise(torch.exp(logits.clamp(-30, 15)) * there, y, group)
            each = torch.exp(scores.clamp(-30, 15))[:, None]
            total = total + 0.25 * _listwise(each, gold[:, None], group)
            optimiser.zero_grad()
            total.backward()
            optimiser.step()
            schedule.step()
    weights = {name: one.detach().numpy().astype(np.float32) for name, one in w.items()}
    return weights | {"mean": mean, "deviation": deviation}


def _start(features: int) -> dict[str, torch.Tensor]:

    shapes = {
        "1": (features, WIDTH),
        "2": (WIDTH, WIDTH),
        "3": (4 * WIDTH, WIDTH),
        "4": (WIDTH, 1),
    }
    w: dict[str, torch.Tensor] = {}
    for name, (a, b) in shapes.items():
        w[f"w{name}"], w[f"b{name}"] = _layer(a, b)
    w["p1"], w["c1"] = _layer(2 * WIDTH, 24)
    w["p2"], w["c2"] = _layer(24, 1)
    w["skip"], _ = _layer(features, 1)
    return w


def _layer(inputs: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    bound = inputs**-0.5
    return (
        torch.empty(inputs, outputs).uniform_(-bound, bound).requires_grad_(),
        torch.empty(1, outputs).uniform_(-bound, bound).requires_grad_(),
    )


def _forward(
    w: dict[str, torch.Tensor], x: torch.Tensor, there: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch
    from torch.nn.functional import dropout, pad, relu

    n, size, _ = x.shape
    hidden = dropout(relu(x @ w["w1"] + w["b1"]), DROPOUT)
    hidden = dropout(relu(hidden @ w["w2"] + w["b2"]), DROPOUT) * there[..., None]
    best, mean = hidden.amax(1), hidden.sum(1) / there.sum(1, keepdim=True)
    near = pad(hidden, (0, 0, 1, 0))[:, :size] + pad(hidden, (0, 0, 0, 1))[:, 1:]
    around = [one[:, None].expand(n, size, WIDTH) for one in (best, mean)]
    joined = torch.cat([hidden, near, *around], 2)
    of_sentences = dropout(relu(joined @ w["w3"] + w["b3"]), DROPOUT) @ w["w4"] + w["b4"]
    pooled = torch.cat([best, mean], 1)
    of_passages = relu(pooled @ w["p1"] + w["c1"]) @ w["p2"] + w["c2"]
    return (of_sentences + x @ w["skip"]).squeeze(2), of_passages.squeeze(1)


def _listwise(each: torch.Tensor, gold: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of gold items against all of their question, over questions with gold."""
    import torch

    n = int(group.max()) + 1
    total = torch.zeros(n).index_add(0, group, each.sum(1))
    right = torch.zeros(n).index_add(0, group, (each * gold).sum(1))
    has = torch.zeros(n).index_add(0, group, gold.sum(1)) > 0
    if not has.any():
        return total.sum() * 0
    return (torch.log(total[has] + 1e-9) - torch.log(right[has] + 1e-9)).mean()


def _batch(
    records: Sequence[Recorded],
    rng: np.random.Generator,
    mean: NDArray[np.float32],
    deviation: NDArray[np.float32],
) -> tuple[torch.Tensor, ...]:
    """Return a batch of passages, some dropped at random: features, gold, mask, case numbers, weights."""
    import torch

    rows: list[NDArray[np.float32]] = []
    gold: list[NDArray[np.bool_]] = []
    group: list[int] = []
    weight: list[float] = []
    for g, record in enumerate(records):
        first = np.concatenate([[0], np.cumsum(record.sizes)])
        places = _drawn(record, rng)
        spans = [slice(first[i], first[i + 1]) for i in places]
        best = np.max([record.features[s][:, _PLACES].max(axis=0) for s in spans], axis=0)
        for i, span in zip(places, spans, strict=True):
            own = record.features[span]
            rows.append(np.concatenate([own, own[:, _PLACES] - best], axis=1))
            gold.append(record.gold[span])
            group.append(g)
            partly = record.case.origin in HALF and record.case.kinds[i] == "gold"
            weight.append(0.5 if partly else 1.0)
    size = max(map(len, rows))
    x = np.zeros((len(rows), size, len(mean)), np.float32)
    y, there = np.zeros((2, len(rows), size), np.float32)
    for i, (own, of) in enumerate(zip(rows, gold, strict=True)):
        x[i, : len(own)] = np.clip((own - mean) / deviation, -5, 5)
        y[i, : len(own)] = of
        there[i, : len(own)] = 1
    arrays: tuple[Any, ...] = (x, y, there, np.array(group), np.array(weight, np.float32))
    return tuple(torch.from_numpy(one) for one in arrays)


def _drawn(record: Recorded, rng: np.random.Generator) -> list[int]:
    """Draw all passages, all but the gold one, only random ones, or one to three of them."""
    places = list(range(len(record.sizes)))
    strangers = [i for i in places if record.case.kinds[i] == "random"]
    luck = rng.random()
    if luck < 0.12 and len(places) > 2:
        return places[1:]
    if luck < 0.32 and strangers:
        return _some(strangers, int(rng.integers(1, len(strangers) + 1)), rng)
    if luck < 0.45:
        return _some(places, min(len(places), int(rng.integers(1, 4))), rng)
    return places


def _some(places: Sequence[int], n: int, rng: np.random.Generator) -> list[int]:
    found: list[int] = rng.choice(np.array(places), n, replace=False).tolist()
    return found


def packed(
    networks: Sequence[dict[str, NDArray[np.float32]]],
    codec: LateCodec,
    weights: Weights,
    *,
    chosen: tuple[float, float, float, float] = (0.5, 0.5, 1.0, 0.0),
) -> bytes:
    """Return the file of a head; ``chosen`` is its threshold, share left, slope and offset."""
    stacked: dict[str, Any] = {n: np.stack([one[n] for one in networks]) for n in networks[0]}
    mean, deviation = stacked.pop("mean")[0], stacked.pop("deviation")[0]
    threshold, left, *calibration = chosen
    file = io.BytesIO()
    np.savez_compressed(
        file,
        format=heads.FORMAT,
        codec=codec.name,
        features=np.array(NAMES),
        threshold=threshold,
        left=left,
        calibration=np.array(calibration),
        mean=mean,
        deviation=deviation,
        **{
            n: getattr(weights, n)
            for n in ("idf", "digits", "token", "question", "echo", "bias", "out")
        },
        **stacked,
    )
    return file.getvalue()
