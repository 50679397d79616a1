"""The cross-encoder in torch: layers of the packaged MiniLM with new heads, its losses, and its export.

Losses of a question: the likelihood of the gold sentences among the sentences and "not here" (the mean of a sentence's
tokens against one score of the text, as SQuAD 2.0's readers have it), the span's two ends, Provence's labels of tokens
(Chirkova et al. 2025, equation 1) and a ranking loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from posology.hub import published
from posology.index.embedders.onnx.export import TOKENS as AXES
from posology.index.embedders.onnx.export import additive, traced
from posology.index.embedders.onnx.forward import WordVectors
from posology.reading.crossencoder import ABSENT, END, RANK, RELEVANT, START
from posology.reading.pairs import Pair, padded, pairs
from training.reader.cases import Lesson

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: tokens of a lesson at most
LIMIT = 256
#: layers that keep the packaged weights, from the bottom
FROZEN = 2
#: weights of the losses of ends, tokens and ranking
ENDS, TOKENS, RANKING = 0.5, 0.5, 0.3
_NEVER = -1e4


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Example:
    """A lesson as model input."""

    lesson: Lesson
    pair: Pair
    #: of each token of the text: 1 in a gold sentence, 0 in another, -1 neither right nor wrong
    labels: NDArray[np.int64]
    #: first and last token of the answer in the input; ``None``: unknown
    ends: tuple[int, int] | None


def example(lesson: Lesson, limit: int = LIMIT) -> Example:
    """Encode a lesson: the window with most of its gold sentences."""
    windows = pairs(
        lesson.asked, lesson.text, lesson.sentences, heading=lesson.heading, limit=limit
    )
    gold = np.array(sorted(lesson.gold), np.int64)
    pair = max(windows, key=lambda one: int(np.isin(one.sentence, gold).sum()))
    labels = np.isin(pair.sentence, gold).astype(np.int64)
    unmarked = np.array([-1, *sorted(lesson.open)], np.int64)
    labels[np.isin(pair.sentence, unmarked)] = -1
    return Example(lesson=lesson, pair=pair, labels=labels, ends=_ends(lesson, pair))


def _ends(lesson: Lesson, pair: Pair) -> tuple[int, int] | None:
    if lesson.span is None:
        return None
    own = (pair.sentence >= 0) & (pair.starts < lesson.span[1]) & (pair.ends > lesson.span[0])
    places = np.flatnonzero(own)
    return None if not len(places) else (pair.first + int(places[0]), pair.first + int(places[-1]))


class ReaderModel(nn.Module):
    """Layers with a head on tokens and one on the text."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        size = int(encoder.config.hidden_size)
        self.tokens = nn.Linear(size, 3)
        self.pooled = nn.Linear(4 * size, size)
        self.texts = nn.Linear(size, 2)

    def forward(self, embeddings: Tensor, mask: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of tokens, shape ``(rows, width, 3)``, and of texts, ``(rows, 2)``."""
        hidden = read_pair(self.encoder, embeddings, mask, segments)
        seen = pair_vectors(hidden, mask, segments)
        return self.tokens(hidden), self.texts(torch.tanh(self.pooled(seen)))


def read_pair(encoder: Any, embeddings: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
    """Return the vectors of a pair's tokens, shape ``(rows, width, dim)``."""
    found: Tensor = encoder(
        inputs_embeds=embeddings, attention_mask=additive(mask), token_type_ids=segments
    ).last_hidden_state
    return found


def pair_vectors(hidden: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
    """Return the vectors of pairs as wholes, shape ``(rows, 4 * dim)``, by those of their tokens.

    They are those of the first token, the means of both segments, and how far these are apart.
    """
    read = (mask * segments)[:, None, :].to(hidden.dtype)
    asked = (mask * (1 - segments))[:, None, :].to(hidden.dtype)
    text = (read @ hidden)[:, 0] / read.sum(dim=2)
    question = (asked @ hidden)[:, 0] / asked.sum(dim=2)
    return torch.cat([hidden[:, 0], text, question, (text - question).abs()], dim=1)


def layers(config: Any = None, *, dropout: float = 0.0) -> Any:
    """Return the packaged encoder's layers, for training.

    Args:
        config: of another encoder, with random weights, for tests; ``None``: the packaged one.
        dropout: of its hidden states.
    """
    from transformers import BertModel

    if config is not None:
        return BertModel(config, add_pooling_layer=False)
    return BertModel.from_pretrained(
        str(published()),
        add_pooling_layer=False,
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=dropout,
        dtype=torch.float32,
    )


def make(seed: int, config: Any = None) -> ReaderModel:
    """Return the untrained model: packaged layers and new heads.

    Args:
        seed: of the heads.
        config: see :func:`layers`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = layers(config)
        model = ReaderModel(encoder)
    for part in (encoder.embeddings, *encoder.encoder.layer[:FROZEN]):
        for weights in part.parameters():
            weights.requires_grad = False
    return model


def batch(
    pairs: Sequence[Pair], words: WordVectors | NDArray[np.float32]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a model's inputs: vectors of words, mask, and segments."""
    ids, mask, segments = padded(pairs)
    return torch.from_numpy(words[ids]), torch.from_numpy(mask), torch.from_numpy(segments)


def loss(
    model: ReaderModel, examples: Sequence[Example], words: WordVectors | NDArray[np.float32]
) -> Tensor:
    """Return the mean loss of examples."""
    tokens, texts = model(*batch([one.pair for one in examples], words))
    tokens, texts = tokens.float(), texts.float()
    width = tokens.shape[1]
    sentences = 1 + max(int(one.pair.sentence.max(initial=0)) for one in examples)
    at = np.full((len(examples), width), -1, np.int64)
    labels = np.full((len(examples), width), -1, np.int64)
    for row, one in enumerate(examples):
        first, count = one.pair.first, len(one.labels)
        at[row, first : first + count] = one.pair.sentence
        labels[row, first : first + count] = one.labels
    inside = torch.from_numpy(at >= 0)
    place = torch.from_numpy(np.maximum(at, 0))
    counts = torch.zeros(len(examples), sentences).scatter_add_(1, place, inside.float())
    sums = torch.zeros(len(examples), sentences).scatter_add_(
        1, place, tokens[:, :, RELEVANT] * inside
    )
    means = sums / counts.clamp(min=1)
    gold, shown = _marks(examples, counts)
    odds = torch.cat([means.masked_fill(~shown, _NEVER), texts[:, ABSENT : ABSENT + 1]], dim=1)
    here = gold.any(dim=1)
    wanted = torch.cat([gold, ~here[:, None]], dim=1)
    found = torch.logsumexp(odds.masked_fill(~wanted, _NEVER), dim=1)
    total = (torch.logsumexp(odds, dim=1) - found).sum()
    taught = torch.from_numpy(labels)
    kept = functional.binary_cross_entropy_with_logits(
        tokens[:, :, RELEVANT], taught.clamp(min=0).float(), reduction="none"
    )
    known = (taught >= 0).float()
    total = total + TOKENS * ((kept * known).sum(dim=1) / known.sum(dim=1).clamp(min=1)).sum()
    total = total + RANKING * functional.binary_cross_entropy_with_logits(
        texts[:, RANK], here.float(), reduction="sum"
    )
    return (total + ENDS * _spans(examples, tokens, inside)) / len(examples)


def _marks(examples: Sequence[Example], counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return which sentences are gold, and which count, shape ``(rows, sentences)``."""
    gold = torch.zeros(counts.shape, dtype=torch.bool)
    shown = counts > 0
    for row, one in enumerate(examples):
        for k in one.lesson.gold:
            if k < counts.shape[1]:
                gold[row, k] = True
        for k in one.lesson.open:
            if k < counts.shape[1]:
                shown[row, k] = False
    return gold & shown, shown


def _spans(examples: Sequence[Example], tokens: Tensor, inside: Tensor) -> Tensor:
    rows = [i for i, one in enumerate(examples) if one.ends is not None]
    if not rows:
        return torch.zeros(())
    total = torch.zeros(())
    for column, side in ((START, 0), (END, 1)):
        odds = tokens[rows, :, column].masked_fill(~inside[rows], _NEVER)
        wanted = torch.tensor([ends[side] for i in rows if (ends := examples[i].ends)])
        total = total + functional.cross_entropy(odds, wanted, reduction="sum")
    return total / 2


def export(model: ReaderModel) -> bytes:
    """Return the model in ONNX's format, float32, without word embeddings."""
    given = sample_batch(int(model.encoder.config.hidden_size))
    return traced(model, given, {"tokens": AXES, "texts": {0: "rows"}})


def sample_batch(size: int) -> dict[str, Tensor]:
    """Return inputs of two pairs, one of them padded, by which a model is traced.

    Args:
        size: of a word's vector.
    """
    mask = torch.ones((2, 7), dtype=torch.long)
    mask[1, 5:] = 0
    segments = torch.zeros_like(mask)
    segments[:, 3:] = 1
    return {
        "embeddings": torch.randn(2, 7, size),
        "attention_mask": mask,
        "token_type_ids": segments,
    }
