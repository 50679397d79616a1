"""Compressor that replaces passages by summaries of fine-tuned models."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence

from posology.devices import find_device
from posology.errors import ConfigurationError
from posology.hub import locate
from posology.seams import Memory
from posology.types import Compressed, Excerpt, Retrieval, Retrieved
from strategies.compression.checked import check
from strategies.compression.parts import Parts
from strategies.compression.results import share_of
from strategies.compression.summarization.card import Card, read_card
from strategies.compression.summarization.model import Summarizer, load

NAME = "summarization"
#: compression ratio of a model without a card
UNKNOWN_SHARE = 0.5
#: Seconds per word of the source on two cores, for a model without a card. Measured: 50 s of one core for 200 words
#: by a model of the size of mT5 base, one passage at a time.
SECONDS_A_WORD = 0.12
#: words of the passages that a card's seconds were measured on: an abstract
_ABSTRACT = 200
#: separator of several model folders
SEPARATOR = ":"


class Summarization:
    """Summarises each passage by a local model; a :class:`~posology.seams.Compressor`.

    Of several models, the one fine-tuned for the nearest compression ratio is used. Sentences of a summary that the
    passage does not support are removed (:func:`check`). A passage whose summary is empty is left out, and a passage
    that is not longer than its summary is shown whole. Summaries do not depend on the question: each is made once,
    and with a memory it is kept permanently.
    """

    name = NAME
    extractive = False

    def __init__(self, models: Sequence[str], *, memory: Memory | None = None) -> None:
        """Name the models; each is loaded at its first use.

        Args:
            models: folders or Hugging Face names, at least one.
            memory: keeps summaries permanently; ``None``: they are kept by this object.

        Raises:
            ModelUnavailable: the files of a model are missing.
            ValueError: no model is named.
        """
        if not models:
            raise ValueError("models must not be empty")
        self._cards = {name: read_card(locate(name, kind="summarization model")) for name in models}
        self._memory = memory or _Own()
        self._lock = threading.Lock()
        self._loaded: dict[str, Summarizer] = {}

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Summarise the passages of a retrieval.

        Args:
            retrieval: passages.
            keep: share of the words, 0 to 1; 1: passages are shown whole. ``None``: the first model's ratio.

        Raises:
            ValueError: ``keep`` is not from 0 to 1.
            ModelUnavailable: the model cannot be loaded.
        """
        if share_of(keep, 0.0) == 1:
            return _compressed(retrieval, [one.excerpt() for one in retrieval.passages])
        written = self._summaries(self._nearest(keep), retrieval.passages)
        shown, dropped = [], 0
        for one in retrieval.passages:
            text = one.passage.text
            raw = written.get(text, "")
            if len(raw.split()) >= len(text.split()) or len(raw) >= len(text):
                shown.append(one.excerpt())
                continue
            found = check(raw, one.passage)
            dropped += found.dropped
            shown.append(Excerpt(passage=one.passage, sentences=(), summary=found.text or None))
        return _compressed(retrieval, shown, dropped)

    def expected_ratio(self, keep: float | None) -> float:
        """Return the expected compression ratio, as measured when the model was fine-tuned.

        Raises:
            ValueError: ``keep`` is not from 0 to 1.
        """
        if share_of(keep, 0.0) == 1:
            return 1.0
        # the expected ratio never decreases with the share
        shares = sorted(self._cards.values(), key=_share)
        nearest = _share(self._cards[self._nearest(keep)])
        return min(1.0, max(_left(card) for card in shares if _share(card) <= nearest))

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Estimate the seconds, as measured when the model was fine-tuned; known summaries take none.

        Raises:
            ValueError: ``keep`` is not from 0 to 1.
        """
        if share_of(keep, 0.0) == 1:
            return 0.0
        name = self._nearest(keep)
        card = self._cards[name]
        a_word = SECONDS_A_WORD if card.seconds is None else card.seconds / _ABSTRACT
        known = self._known(name, retrieval.passages)
        unknown = {one.passage.text for one in retrieval.passages} - known.keys()
        return a_word * sum(len(text.split()) for text in unknown)

    def _nearest(self, keep: float | None) -> str:
        if keep is None:
            return next(iter(self._cards))
        shares = {name: _share(card) for name, card in self._cards.items()}
        # ties go to the shorter; rounding, so that 0.4 is as near to 0.3 as to 0.5
        return min(shares, key=lambda name: (round(abs(shares[name] - keep), 9), shares[name]))

    def _summaries(self, name: str, passages: Iterable[Retrieved]) -> dict[str, str]:
        """Return the summary of each text."""
        texts = list(dict.fromkeys(one.passage.text for one in passages))
        if not texts:
            return {}
        model = self._model(name)
        keys = {text: _key(model.name, text) for text in texts}
        stored = self._memory.get(list(keys.values()))
        missing = [text for text in texts if keys[text] not in stored]
        written = dict(zip(missing, model(missing), strict=True)) if missing else {}
        if written:
            self._memory.put(
                {
                    keys[text]: said.encode("utf-8", "surrogatepass")
                    for text, said in written.items()
                }
            )
        return {
            text: written[text] if text in written else _text(stored[keys[text]]) for text in texts
        }

    def _known(self, name: str, passages: Sequence[Retrieved]) -> Mapping[str, bytes]:
        """Return the known summaries by text; none if the model is not loaded."""
        model = self._loaded.get(name)
        if model is None:
            return {}
        keys = {_key(model.name, one.passage.text): one.passage.text for one in passages}
        return {keys[key]: value for key, value in self._memory.get(list(keys)).items()}

    def _model(self, name: str) -> Summarizer:
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load(name, device=find_device(None))
            return self._loaded[name]


def make(parts: Parts) -> Summarization:
    """Return the compressor with the configured models, separated by colons.

    Raises:
        ConfigurationError: no model is configured.
        ModelUnavailable: the files of a model are missing.
    """
    named = [one.strip() for one in parts.models.get(NAME, "").split(SEPARATOR)]
    models = [one for one in named if one]
    if not models:
        raise ConfigurationError(
            f"no model is configured for {NAME}. Make one with `posology compressor finetune` and set "
            f"POSOLOGY_COMPRESSOR_MODEL={NAME}=DIR, or {NAME}=DIR:DIR for several ratios."
        )
    return Summarization(models, memory=parts.memory() if parts.memory else None)


class _Own:
    """In-process :class:`~posology.seams.Memory`."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self._values[key] for key in keys if key in self._values}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        for key, value in values.items():
            self._values.setdefault(key, value)


def _compressed(retrieval: Retrieval, shown: Sequence[Excerpt], dropped: int = 0) -> Compressed:
    excerpts = tuple(one for one in shown if one.sentences or one.summary)
    remark = (
        f"{dropped} sentences of summaries were removed because the passages do not support them."
    )
    return Compressed(
        excerpts=excerpts,
        kept=sum(len(one.sentences) for one in excerpts),
        sentences=sum(len(one.sentences) for one in retrieval.passages),
        compressor=NAME,
        remarks=(remark,) if dropped else (),
    )


def _share(card: Card) -> float:
    return UNKNOWN_SHARE if card.share is None else card.share


def _left(card: Card) -> float:
    return _share(card) if card.left is None else card.left


def _key(model: str, text: str) -> bytes:
    digest = hashlib.sha256(f"{NAME}\0{model}\0".encode())
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.digest()


def _text(kept: bytes) -> str:
    return kept.decode("utf-8", "surrogatepass")
