"""Checks that the bound on a call's input holds, and measures how loose it is.

Usage: ``python -m evals.money.bounds [--data PATH] [--texts N]``.

Byte-level BPE tokenizers are trained on half of the texts and count the other half. ``medical`` ones are trained on
abstracts; ``everyday`` ones on general text and English words, so that they cut medical terms as providers' do (about
4.3 bytes a token of an abstract). OpenAI's own join in if ``tiktoken`` is installed and has their files. Fails if a
text's count exceeds its bound.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from posology.budget.bounds.openai_tokens import ENCODINGS, default_folder, load
from posology.text.bounds import TextBound, bytes_bound, words_bound
from training.frequent_words import FILES, Texts, vocabulary
from training.gold import need

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
_SIZES = (32_000, 50_000, 100_000)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: a combining mark, a zero-width space, an emoji, Han, Cyrillic, a ligature of 18 letters, an accent
_STRANGE = "\u0301\u200b\U0001f600\u4e2d\u0430\ufdfa\u00e9"

#: texts to their counts
Count = Callable[[Sequence[str]], list[int]]


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


def _made(texts: Texts, n: int) -> Mapping[str, list[str]]:
    """Sets of texts: real ones, and ones made to break a bound."""
    draw = random.Random(5)
    pieces = [e[2:] for e in vocabulary() if re.fullmatch("##[a-z]+", e)]
    rare = words()[12_000:]

    def gibberish() -> str:
        return "".join(draw.choices(_LETTERS, k=draw.randint(1, 14)))

    def syllables() -> str:
        return "".join(draw.choices(pieces, k=draw.randint(1, 4)))

    def anything() -> str:
        kinds: tuple[Callable[[], str], ...] = (
            lambda: draw.choice(words()),
            lambda: draw.choice(words()).upper(),
            lambda: "".join(draw.choices(_STRANGE, k=3)),
            lambda: str(draw.randint(0, 10**6)),
            lambda: draw.choice(".,;:()[]{}|<>/\\\n\t"),
            lambda: " " * draw.randint(1, 4),
        )
        return draw.choice(kinds)()

    few = range(n // 4)
    abstracts = texts.abstracts[1][:n]
    return {
        "abstracts": abstracts,
        "SQuAD": texts.general[1][:n],
        "gibberish": [" ".join(gibberish() for _ in range(100)) for _ in few],
        "syllables": [" ".join(syllables() for _ in range(100)) for _ in few],
        "rare words": [" ".join(draw.choices(rare, k=100)) for _ in few],
        "mixtures": ["".join(anything() for _ in range(200)) for _ in few],
        "CAPITALS": [text.upper() for text in abstracts[: n // 4]],
        "lines": [text.replace(" ", "\n") for text in abstracts[: n // 4]],
        "Titles": [text.title() for text in abstracts[: n // 4]],
    }


def _tokenizers(texts: Texts) -> Mapping[str, Count]:
    made: dict[str, Count] = {}
    for kind, content in (("medical", medical), ("everyday", everyday)):
        for pattern in PATTERNS:
            for size in _SIZES:
                tokenizer = train(content(texts), size=size, pattern=pattern)
                made[f"{kind} {pattern} {tokenizer.get_vocab_size():,}"] = partial(
                    counts, tokenizer
                )
    for name, file in ENCODINGS.items():
        if exact := load(file, default_folder()):
            made[f"OpenAI {name}"] = partial(_each, exact)
    return made


def _each(count: TextBound, texts: Sequence[str]) -> list[int]:
    return [count(text) for text in texts]


def _compare(texts: Texts, n: int) -> bool:
    sets = _made(texts, n)
    bounds = {name: np.array([words_bound(t) for t in batch]) for name, batch in sets.items()}
    plain = {name: np.array([bytes_bound(t) for t in batch]) for name, batch in sets.items()}
    held = True
    print("| tokenizer | texts | holds | bound/count mean | p95 | least | bytes/count |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for tokenizer, count in _tokenizers(texts).items():
        for name, batch in sets.items():
            counted = np.array(count(batch))
            ratio = bounds[name] / counted
            within = float((ratio >= 1).mean())
            held &= within == 1.0
            print(
                f"| {tokenizer} | {name} | {within:.1%} | {ratio.mean():.2f} "
                f"| {np.percentile(ratio, 95):.2f} | {ratio.min():.2f} "
                f"| {(plain[name] / counted).mean():.2f} |",
                flush=True,
            )
        alone = [f" {word}" for word in words()]
        over = sum(
            counted > words_bound(text) for counted, text in zip(count(alone), alone, strict=True)
        )
        print(
            f"| {tokenizer} | each word alone | {1 - over / len(alone):.1%} | | | | |", flush=True
        )
    return held


def _speed(texts: Texts) -> None:
    text = " ".join(texts.abstracts[1][:40])[:16_000]
    words_bound(text)
    took = []
    for _ in range(200):
        started = time.perf_counter()
        words_bound(text)
        took.append(time.perf_counter() - started)
    print(
        f"16,000 characters of abstracts, warm: {min(took) * 1e3:.2f} ms at best, "
        f"{np.median(took) * 1e3:.2f} ms as a rule"
    )


def main(argv: list[str] | None = None) -> int:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(prog="evals.money.bounds", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--texts", type=int, default=1_200, help="of each real set")
    arguments = parser.parse_args(argv)
    data: Path = arguments.data
    need(data, *FILES)
    texts = Texts.read(data)
    held = _compare(texts, arguments.texts)
    _speed(texts)
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
