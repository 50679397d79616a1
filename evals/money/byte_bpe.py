"""Byte-level BPE tokenizers, trained on the spot, as stand-ins for providers' own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from training.frequent_words import Texts, vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: what a text is cut by before merging
PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
}
_ZIPF = 60_000


def medical(texts: Texts) -> Iterator[str]:
    """To train a tokenizer that knows the literature better than any provider's does."""
    yield from texts.abstracts[0]
    yield from texts.general[0]


def everyday(texts: Texts) -> Iterator[str]:
    """To train one that knows no medicine: general text, and English words by their frequency.

    The words are those of the packaged word-piece vocabulary, the n-th of them ``1/n`` as often.
    """
    yield from texts.general[0]
    yield from texts.web
    for place, word in enumerate(words(), 1):
        often = max(2, _ZIPF // place)
        yield f" {word}" * often
        yield f" {word.capitalize()}" * max(1, often // 8)


@cache
def words() -> tuple[str, ...]:
    """Its whole words of ASCII letters."""
    return tuple(entry for entry in vocabulary() if re.fullmatch("[a-z]{2,}", entry))


def train(texts: Iterable[str], *, size: int, pattern: str) -> Tokenizer:
    """A tokenizer of at most ``size`` entries, all 256 bytes among them."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator(texts, trainer)
    return made


def counts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    """Tokens of each text."""
    return [len(one.ids) for one in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
