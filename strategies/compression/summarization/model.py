"""Any sequence-to-sequence model of Hugging Face that writes texts anew, shorter (TCRA-LLM, sections 4.2.1, 5.1).

The paper's is mT5, pre-trained for summaries (XLSum) and fine-tuned on a few hundred passages for each share.
"""

from __future__ import annotations

import copy
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.errors import ModelUnavailable
from posology.hub import digest, locate, without_progress_bars
from strategies.compression.summarization.card import Card, read_card
from strategies.compression.summarization.pieces import pieces

if TYPE_CHECKING:
    from torch import Tensor

#: what the paper fine-tunes (section 5.1)
MT5 = "csebuetnlp/mT5_multilingual_XLSum"
#: tokens of one pass of the encoder, padding included
TOKENS_A_PASS = 4_096


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoding:
    """How words are chosen. Nothing is drawn at random: the same text has the same summary."""

    #: 1: greedy, the likeliest token at each step; else the width of a beam search
    beams: int = 1

    @property
    def name(self) -> str:
        """For what is kept for good."""
        return f"beams={self.beams}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """A model and its tokenizer, and where they came from."""

    #: of ``AutoModelForSeq2SeqLM``
    model: Any
    #: of ``AutoTokenizer``
    tokenizer: Any
    folder: Path
    card: Card


class Summarizer:
    """Summarises texts in batches of about one length. Blocking; one batch at a time, whoever asks.

    A text that is longer than the model takes is summarised in pieces, sentence by sentence. No summary has more
    tokens than its text. Build it with :func:`load`.
    """

    def __init__(
        self, loaded: Loaded, *, decoding: Decoding | None = None, device: str = "cpu"
    ) -> None:
        """Put a model on a device.

        Args:
            loaded: in evaluation mode from here on.
            decoding: ``None``: greedy.
            device: ``cpu``, ``cuda`` or one of several, as ``cuda:1``.
        """
        self.card = loaded.card
        self._model = loaded.model.eval().to(device)
        self._tokenizer = loaded.tokenizer
        self._decoding = decoding or Decoding()
        self._device = device
        self._limit = limit(loaded.model.config, loaded.card.tokens)
        self._lock = threading.Lock()
        kind = loaded.model.config.model_type
        #: kind of model, digest of its weights, and how it is used: equal names write alike
        self.name = f"{kind}:{digest(loaded.folder)}:{self._limit}:{self._decoding.name}"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """One summary a text; empty where the model has nothing to say, or the text is empty."""
        cut = [pieces(text, self._count, self._limit - 1) for text in texts]
        flat = [piece for parts in cut for piece in parts]
        written = iter(self._write(flat))
        return [" ".join(said for _ in parts if (said := next(written))) for parts in cut]

    def _write(self, texts: Sequence[str]) -> list[str]:
        found: dict[int, str] = {}
        with self._lock:
            for batch in self._batches(texts):
                said = self._generate([texts[i] for i in batch])
                found.update(zip(batch, said, strict=True))
        return [found[i] for i in range(len(texts))]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Texts of about one length together, the longest first: what does not fit fails at once."""
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
        # cut each at its own text's length, so that its neighbours in the batch change nothing
        return [
            " ".join(self._tokenizer.decode(row[1 : size + 1], skip_special_tokens=True).split())
            for row, size in zip(written.tolist(), sizes, strict=True)
        ]

    def _config(self, tokens: int) -> Any:
        """The model's own settings where they say how it begins and ends, and ours for all else."""
        config = copy.deepcopy(self._model.generation_config)
        # a model made for headlines is bounded to a line, and says no word twice
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
    """Texts as tensors ``input_ids`` and ``attention_mask``, shape ``(texts, longest)``, cut at ``tokens``."""
    return tokenizer(
        list(texts), padding=True, truncation=True, max_length=tokens, return_tensors="pt"
    )


def targets(tokenizer: Any, texts: Sequence[str], tokens: int) -> Tensor:
    """Texts as labels, shape ``(texts, longest)``; what is padding counts in no loss."""
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
    """Tokens that a model takes and gives at most: ``tokens``, or its own bound where that is lower."""
    own = getattr(config, "max_position_embeddings", None)
    return min(tokens, int(own)) if own else tokens


def read(model: str) -> Loaded:
    """Load a model's files. Blocking, and it never reaches the network.

    Args:
        model: the folder of a model, or a name on the Hugging Face hub whose files are in the local cache.

    Raises:
        ModelUnavailable: there are no such files, or they are of no sequence-to-sequence model.
    """
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = locate(model, kind="summarization model")
    card = read_card(folder)
    try:
        with without_progress_bars():
            # weights alone: where they are a pickle, as mT5's on the hub, nothing in it is run
            loaded = AutoModelForSeq2SeqLM.from_pretrained(
                folder, local_files_only=True, weights_only=True
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    # damaged files surface as whatever the parser of that file raises
    except Exception as error:
        raise ModelUnavailable(
            f"{folder} does not load as a sequence-to-sequence model: {_hint(folder)}{error}",
            model=model,
        ) from error
    return Loaded(model=loaded, tokenizer=tokenizer, folder=folder, card=card)


def _hint(folder: Path) -> str:
    """What is missing to read a tokenizer as mT5's on the hub; what is fine-tuned here needs it no more."""
    own = (folder / "tokenizer.json").exists() or not any(folder.glob("*.model"))
    if own or importlib.util.find_spec("sentencepiece") is not None:
        return ""
    return "its tokenizer is SentencePiece's, so install sentencepiece and protobuf. "


def load(model: str, *, decoding: Decoding | None = None, device: str = "cpu") -> Summarizer:
    """Load a summarizer. Blocking; see :func:`read`.

    Raises:
        ModelUnavailable: there are no such files, or they are of no sequence-to-sequence model.
    """
    return Summarizer(read(model), decoding=decoding, device=device)
