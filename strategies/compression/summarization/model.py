"""Summarizer: any sequence-to-sequence model of Hugging Face (TCRA-LLM, sections 4.2.1, 5.1).

The paper uses mT5, pre-trained on summaries (XLSum) and fine-tuned on a few hundred passages for each ratio.
"""

from __future__ import annotations

import copy
import importlib.util
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.cancellation import checkpoint
from posology.errors import ModelUnavailable
from posology.hub import digest, loading, locate
from posology.text.sentences import split
from strategies.compression.summarization.card import Card, read_card

if TYPE_CHECKING:
    from torch import Tensor

#: counts the tokens of each text
Count = Callable[[Sequence[str]], list[int]]
#: initial model of the paper (section 5.1)
MT5 = "csebuetnlp/mT5_multilingual_XLSum"
#: tokens of one pass of the encoder, padding included
TOKENS_A_PASS = 4_096


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoding:
    """Decoding without sampling: equal texts have equal summaries."""

    #: 1: greedy; else the width of a beam search
    beams: int = 1

    @property
    def name(self) -> str:
        """Return the name for memory keys."""
        return f"beams={self.beams}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """A model with its tokenizer, folder and card."""

    #: an ``AutoModelForSeq2SeqLM``
    model: Any
    #: an ``AutoTokenizer``
    tokenizer: Any
    folder: Path
    card: Card


class Summarizer:
    """Summarises texts in batches of similar length. Blocking; thread-safe, one batch at a time.

    A text longer than the model's limit is split at sentences and summarised in pieces. No summary has more tokens
    than its text. Build it with :func:`load`.
    """

    def __init__(
        self, loaded: Loaded, *, decoding: Decoding | None = None, device: str = "cpu"
    ) -> None:
        """Put a model on a device.

        Args:
            loaded: put into evaluation mode.
            decoding: ``None``: greedy.
            device: ``cpu``, ``cuda`` or ``cuda:N``.
        """
        self.card = loaded.card
        self._model = loaded.model.eval().to(device)
        self._tokenizer = loaded.tokenizer
        self._decoding = decoding or Decoding()
        self._device = device
        self._limit = limit(loaded.model.config, loaded.card.tokens)
        self._lock = threading.Lock()
        kind = loaded.model.config.model_type
        #: architecture, digest of the weights, limit and decoding: equal names write equal summaries
        self.name = f"{kind}:{digest(loaded.folder)}:{self._limit}:{self._decoding.name}"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return a summary of each text; empty for an empty text or an empty reply."""
        cut = [pieces(text, self._count, self._limit - 1) for text in texts]
        flat = [piece for parts in cut for piece in parts]
        written = iter(self._write(flat))
        return [" ".join(said for _ in parts if (said := next(written))) for parts in cut]

    def _write(self, texts: Sequence[str]) -> list[str]:
        found: dict[int, str] = {}
        with self._lock:
            for batch in self._batches(texts):
                checkpoint()
                said = self._generate([texts[i] for i in batch])
                found.update(zip(batch, said, strict=True))
        return [found[i] for i in range(len(texts))]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Batch texts by length, the longest first, so that memory errors occur early."""
        sizes = [size + 1 for size in self._count(texts)] if texts else []
        order = sorted(range(len(texts)), key=lambda i: (-sizes[i], i))
        batch: list[int] = []
        for i in order:
            if batch and (len(batch) + 1) * sizes[batch[0]] > TOKENS_A_PASS:
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _generate(self, texts: Sequence[str]) -> list[str]:
        import torch

        read = encode(self._tokenizer, texts, self._limit).to(self._device)
        sizes = read["attention_mask"].sum(dim=1).tolist()
        with torch.inference_mode():
            written = self._model.generate(
                input_ids=read["input_ids"],
                attention_mask=read["attention_mask"],
                generation_config=self._config(max(sizes)),
            )
        # truncate each at its own text's length, so that results do not depend on the batch
        return [
            " ".join(self._tokenizer.decode(row[1 : size + 1], skip_special_tokens=True).split())
            for row, size in zip(written.tolist(), sizes, strict=True)
        ]

    def _config(self, tokens: int) -> Any:
        """Return the model's settings of start and end tokens, with our settings for the rest."""
        config = copy.deepcopy(self._model.generation_config)
        # models for headlines limit the length and repetitions
        plain: dict[str, Any] = {
            "max_length": None, "min_length": 0, "max_new_tokens": tokens, "do_sample": False,
            "num_beams": self._decoding.beams, "no_repeat_ngram_size": 0, "length_penalty": 1.0,
            "early_stopping": self._decoding.beams > 1,
        }  # fmt: skip
        for name, value in plain.items():
            setattr(config, name, value)
        return config

    def _count(self, texts: Sequence[str]) -> list[int]:
        read = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [len(ids) for ids in read["input_ids"]]


def encode(tokenizer: Any, texts: Sequence[str], tokens: int) -> Any:
    """Return tensors ``input_ids`` and ``attention_mask``, shape ``(texts, longest)``, truncated at ``tokens``."""
    return tokenizer(
        list(texts), padding=True, truncation=True, max_length=tokens, return_tensors="pt"
    )


def targets(tokenizer: Any, texts: Sequence[str], tokens: int) -> Tensor:
    """Return labels, shape ``(texts, longest)``; the loss ignores padding."""
    read = tokenizer(
        text_target=list(texts),
        padding=True,
        truncation=True,
        max_length=tokens,
        return_tensors="pt",
    )
    labels: Tensor = read["input_ids"]
    return labels.masked_fill(read["attention_mask"] == 0, -100)


def limit(config: Any, tokens: int) -> int:
    """Return the maximum input and output tokens: ``tokens``, or the model's limit if lower."""
    own = getattr(config, "max_position_embeddings", None)
    return min(tokens, int(own)) if own else tokens


def read(model: str) -> Loaded:
    """Load a model's files. Blocking; without network access.

    Args:
        model: a folder, or a Hugging Face name in the local cache.

    Raises:
        ModelUnavailable: the files are missing, or not those of a sequence-to-sequence model.
    """
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = locate(model, kind="summarization model")
    card = read_card(folder)
    try:
        with loading():
            # weights only: code in a pickle, such as mT5's, is not executed
            loaded = AutoModelForSeq2SeqLM.from_pretrained(
                folder, local_files_only=True, weights_only=True
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    # parsers raise any class for damaged files
    except Exception as error:
        raise ModelUnavailable(
            f"cannot load {folder} as a sequence-to-sequence model: {_hint(folder)}{error}",
            model=model,
        ) from error
    return Loaded(model=loaded, tokenizer=tokenizer, folder=folder, card=card)


def _hint(folder: Path) -> str:
    """Return a hint if the tokenizer needs SentencePiece, as mT5's does; fine-tuned models do not."""
    own = (folder / "tokenizer.json").exists() or not any(folder.glob("*.model"))
    if own or importlib.util.find_spec("sentencepiece") is not None:
        return ""
    return "its tokenizer needs SentencePiece; install sentencepiece and protobuf. "


def load(model: str, *, decoding: Decoding | None = None, device: str = "cpu") -> Summarizer:
    """Load a summarizer. Blocking; see :func:`read`.

    Raises:
        ModelUnavailable: the files are missing, or not those of a sequence-to-sequence model.
    """
    return Summarizer(read(model), decoding=decoding, device=device)


def pieces(text: str, count: Count, limit: int) -> tuple[str, ...]:
    """Split a text into pieces of whole sentences; white space is collapsed.

    Args:
        text: to split.
        count: counts tokens. The sum over sentences is used as the count of a piece.
        limit: maximum tokens of a piece, >= 1. Longer sentences are split between words, longer words within.
    """
    parts = [" ".join(sentence.of(text).split()) for sentence in split(text)]
    fitting = [
        part for sentence in _counted(parts, count) for part in _fit(*sentence, count, limit)
    ]
    found: list[str] = []
    size = limit
    for part, tokens in fitting:
        if size + tokens > limit:
            found.append(part)
            size = tokens
        else:
            found[-1] += f" {part}"
            size += tokens
    return tuple(found)


def _fit(part: str, tokens: int, count: Count, limit: int) -> Iterator[tuple[str, int]]:
    """Halve a part until each piece fits."""
    if tokens <= limit or len(part) < 2:
        yield part, tokens
        return
    middle = len(part) // 2
    space = part.rfind(" ", 1, middle + 1)
    at = space if space > 0 else middle
    halves = [half for half in (part[:at].strip(), part[at:].strip()) if half]
    for half in _counted(halves, count):
        yield from _fit(*half, count, limit)


def _counted(parts: Sequence[str], count: Count) -> list[tuple[str, int]]:
    return list(zip(parts, count(parts), strict=True)) if parts else []
