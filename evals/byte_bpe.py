"""Byte-level BPE tokenizers, trained on the spot: stand-ins for providers' own, which are not at hand."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.index.embedders import DEFAULT, PACKAGED

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
FILES = (
    "pool.jsonl.gz",
    "squad11_dev_part1.jsonl.gz",
    "squad20_dev_part.jsonl.gz",
    "ramdocs_part1.jsonl.gz",
)
_ZIPF = 60_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """Real texts, in halves: one to train on, the other to count."""

    abstracts: tuple[list[str], list[str]]
    #: paragraphs of an encyclopedia
    general: tuple[list[str], list[str]]
    #: passages of the web, to train on
    web: list[str]

    @classmethod
    def read(cls, data: Path) -> Texts:
        """Of the data sets' folder."""
        pool, squad, more, web = (rows(data / name) for name in FILES)
        abstracts = [row["text"] for row in pool]
        random.Random(1).shuffle(abstracts)
        general = [row["context"] for row in (*squad, *more)]
        return cls(
            abstracts=(abstracts[::2], abstracts[1::2]),
            general=(general[::2], general[1::2]),
            web=[document["text"] for row in web for document in row["documents"]],
        )

    def medical(self) -> Iterator[str]:
        """To train a tokenizer that knows the literature better than any provider's does."""
        yield from self.abstracts[0]
        yield from self.general[0]

    def everyday(self) -> Iterator[str]:
        """To train one that knows no medicine: general text, and English words by their frequency.

        The words are those of the packaged word-piece vocabulary, the n-th of them ``1/n`` as often.
        """
        yield from self.general[0]
        yield from self.web
        for place, word in enumerate(words(), 1):
            often = max(2, _ZIPF // place)
            yield f" {word}" * often
            yield f" {word.capitalize()}" * max(1, often // 8)


def rows(path: Path) -> list[dict[str, Any]]:
    """Of a gzipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def vocabulary() -> tuple[str, ...]:
    """Entries of the packaged word-piece vocabulary, the most frequent first."""
    return tuple((PACKAGED[DEFAULT]() / "vocab.txt").read_text("utf-8").splitlines())


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
