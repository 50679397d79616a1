"""Self-information by any causal language model of Hugging Face, as in Selective Context (Li 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.errors import ScorerUnavailable
from posology.hub import digest, find, loading, require
from strategies.compression.wording.phrases import Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Maximum tokens of a window, regardless of the model's limit: distant context adds little.
MOST_CONTEXT = 1_024
#: Tokens of one forward pass: with a vocabulary of 50,000, its logits take 0.2 GB.
TOKENS_A_PASS = 1_024


@dataclass(frozen=True, kw_only=True, slots=True)
class _Window:
    """A stretch of a text's tokens that the model reads at once."""

    text: int
    #: first token
    start: int
    #: first scored token; those before it are context
    scored: int
    end: int


class CausalScorer:
    """:class:`~strategies.compression.self_information.annotator.Scorer` by a causal model; see :func:`load`.

    The bits of a word are the sum of its tokens' bits. Each text is read on its own, its sentences in order. A text
    longer than the model's context is read in windows that overlap by half.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        """Combine a model and its tokenizer.

        Args:
            model: model of ``AutoModelForCausalLM`` in evaluation mode.
            tokenizer: fast tokenizer.
            name: identity of both.
        """
        self._model = model
        self._tokenizer = tokenizer
        self._name = name
        self._limit = _limit(model.config)
        self._begin = _first(tokenizer.bos_token_id, tokenizer.eos_token_id, 0)

    @property
    def name(self) -> str:
        """Return the kind of model, the digest of its weights, and its context length."""
        return f"{self._name}:{self._limit}"

    def learn(self, texts: Iterable[str]) -> None:
        """Do nothing: the model is pre-trained."""

    def dump(self) -> bytes | None:
        """Return ``None``: it has no state of its own."""
        return None

    def restore(self, learned: bytes) -> None:
        """Refuse.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"{self.name} does not learn and has no state to restore (got {len(learned)} bytes)"
        )

    def bits(self, texts: Sequence[str], segments: Sequence[Segments]) -> list[NDArray[np.float32]]:
        """Return the bits of each word of each text."""
        if not texts:
            return []
        read = self._tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        tokens: list[list[int]] = read["input_ids"]
        bits = [np.zeros(len(ids), dtype=np.float32) for ids in tokens]
        for batch in self._batches(tokens):
            for window, scored in zip(batch, self._score(batch, tokens), strict=True):
                bits[window.text][window.scored : window.end] = scored
        return [
            _of_words(found, told, offsets)
            for found, told, offsets in zip(segments, bits, read["offset_mapping"], strict=True)
        ]

    def _batches(self, tokens: list[list[int]]) -> Iterator[list[_Window]]:
        """Yield batches of windows of similar length, to limit padding."""
        windows = sorted(
            (w for i, ids in enumerate(tokens) for w in _windows(i, len(ids), self._limit - 1)),
            key=lambda w: w.end - w.start,
        )
        batch: list[_Window] = []
        for window in windows:
            # the longest comes last, and all are padded to it
            if batch and (len(batch) + 1) * (window.end - window.start + 1) > TOKENS_A_PASS:
                yield batch
                batch = []
            batch.append(window)
        if batch:
            yield batch

    def _score(
        self, batch: list[_Window], tokens: list[list[int]]
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the bits of each window's scored tokens."""
        import torch

        width = 1 + max(w.end - w.start for w in batch)
        ids = torch.full((len(batch), width), self._begin, dtype=torch.long)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        for row, w in enumerate(batch):
            # a start token in front, so that the first token has a probability
            size = 1 + w.end - w.start
            ids[row, 1:size] = torch.tensor(tokens[w.text][w.start : w.end])
            mask[row, :size] = 1
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
            chosen = logits.gather(-1, ids[:, 1:, None]).squeeze(-1)
            nats = (logits.logsumexp(-1) - chosen).clamp(min=0)
        found = np.asarray(nats.numpy() / math.log(2), dtype=np.float32)
        for row, w in enumerate(batch):
            yield found[row, w.scored - w.start : w.end - w.start]


def load(model: str) -> CausalScorer:
    """Load a causal language model from local files. Blocking.

    Args:
        model: folder of a model, or a name on the Hugging Face hub whose files are in the local cache.

    Raises:
        ScorerUnavailable: the files are missing, or are no causal language model with a fast tokenizer.
        ModelUnavailable: the packages that run it are not installed.
    """
    require("models", model)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = find(model)
    if folder is None:
        raise ScorerUnavailable(
            f"Language model {model!r} is not on this machine. Pass the folder of a model, or run "
            f"`hf download {model}` once.",
            model=model,
        )
    try:
        with loading():
            loaded = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    # damaged files raise any error of their parser
    except Exception as error:
        raise ScorerUnavailable(
            f"{folder} does not load as a causal language model: {error}", model=model
        ) from error
    if not tokenizer.is_fast:
        raise ScorerUnavailable(
            f"The tokenizer of {folder} is not a fast one and gives no token offsets. Choose a model with a fast tokenizer.",
            model=model,
        )
    loaded.eval()  # type: ignore[no-untyped-call]
    return CausalScorer(loaded, tokenizer, name=f"{loaded.config.model_type}:{digest(folder)}")


def _limit(config: Any) -> int:
    """Return the model's context in tokens, at most :data:`MOST_CONTEXT`."""
    stated = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    return min([int(n) for n in stated if n] + [MOST_CONTEXT])


def _windows(text: int, size: int, limit: int) -> Iterator[_Window]:
    """Yield windows over a text's tokens; each but the first begins with half a window of context."""
    start = scored = 0
    while scored < size:
        end = min(start + limit, size)
        yield _Window(text=text, start=start, scored=scored, end=end)
        start, scored = end - limit // 2, end


def _of_words(
    found: Segments, bits: NDArray[np.float32], offsets: Sequence[tuple[int, int]]
) -> NDArray[np.float32]:
    """Sum the bits of each word's tokens; white space in front of a word belongs to it."""
    words = np.zeros(len(found.starts), dtype=np.float32)
    if len(words) and len(bits):
        ends = np.fromiter((end for _, end in offsets), dtype=np.int64, count=len(bits))
        at = np.searchsorted(np.array(found.ends), ends - 1, side="right")
        np.add.at(words, np.minimum(at, len(words) - 1), bits)
    return words


def _first(*numbers: int | None) -> int:
    return next(n for n in numbers if n is not None)
