"""A bound on the tokens of a text for tokenizers that are not available.

Proven: a tokenizer over bytes, or with bytes to fall back to, makes no more tokens than the text
has bytes, for a merge never adds one. A normal form may be longer than the text, so bytes are those of a
character or of its decomposition (NFKD), whichever are more. Of text in other scripts, digits, capitals,
punctuation, names and gibberish no less than that is assumed.

Measured: English words take fewer tokens, and almost all of medical prose is English words.
Their rates are below; ``python -m evals.money.bounds`` compares them with tokenizers that it trains, on real
texts and on texts made to break them, and with OpenAI's own where their files are at hand. That the rates
hold for tokenizers that are not published is an extrapolation. A text that is made for it may therefore
exceed the bound; the ledger flags a call whose usage does.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from posology.hub import PACKAGED

#: Words that literature often has in lower case, of the 8,000 that English has most; one token each,
#: after a space. Written by
#: ``python -m training.frequent_words``.
FREQUENT = Path(__file__).parent / "data" / "frequent_words.txt"
#: line of the vocabulary, which is ordered by frequency, to tokens of a whole word
_RATES = ((8_000, 2), (20_000, 3))
#: letters per token of rarer words, and tokens added
_LETTERS, _MORE = 3, 1
#: tokens added for a word without an entry, beyond its word pieces
_CUT = 2
#: minimum letters of a word that takes two tokens more, not one, without a space before it
_LONG = 8
#: longer words are counted by their bytes
_LONGEST = 32
#: number of cached words
_KEPT = 65_536
#: a run of letters and digits of any script, with the space before it, but no number: that saves nothing, and is
#: passed over sooner here than looked up
_RUN = re.compile(r" ?(?<![0-9])[0-9]*+[A-Za-z\x80-\U0010ffff][0-9A-Za-z\x80-\U0010ffff]*")
_ENGLISH = re.compile(r"[A-Za-z][a-z]*")

#: returns a bound on the tokens of a text
TextBound = Callable[[str], int]


def bytes_bound(text: str) -> int:
    """Return the bytes of a text, or of its decomposition if that has more, character by character."""
    if text.isascii():
        return len(text)
    if unicodedata.is_normalized("NFKD", text):
        return _utf8(text)
    return sum(map(_widest, text))


def words_bound(text: str) -> int:
    """Return a bound on the tokens of a text: English words at measured rates, all else by bytes.

    Never more than :func:`bytes_bound`. It is a proven bound of the offline reader's own count: a word
    never has more word pieces than are counted for it here.
    """
    runs = _RUN.findall(text)
    saved = sum(map(_savings().__getitem__, runs))
    return len(text) - saved


class _Savings(dict[str, int]):
    """Cache: a run, with the space before it, to its characters minus its tokens."""

    def __init__(self, tokens: Callable[[str], int]) -> None:
        super().__init__()
        self._tokens = tokens

    def __missing__(self, run: str) -> int:
        saved = len(run) - self._tokens(run)
        # an id of letters and digits saves nothing, and each question may have a new one
        if saved and len(run) <= _LONGEST:
            if len(self) >= _KEPT:
                self.clear()
            self[run] = saved
        return saved


@cache
def _savings() -> _Savings:
    text = (PACKAGED / "tokenizer.json").read_text(encoding="utf-8")
    return _Savings(Words(json.loads(text)["model"]["vocab"], _frequent()))


def _frequent() -> frozenset[str]:
    return frozenset(FREQUENT.read_text(encoding="utf-8").split())


class Words:
    """Counts the tokens of a run of letters and digits, with the space before it.

    Args:
        ranks: entries of a word-piece vocabulary in the order of their frequency, as ``ice`` and
            ``##berg``.
        frequent: words that are one token after a space.
    """

    def __init__(self, ranks: Mapping[str, int], frequent: frozenset[str]) -> None:
        self._ranks = ranks
        self._frequent = frequent

    def __call__(self, run: str) -> int:
        """Return the tokens of a run, at most its bytes."""
        most = bytes_bound(run)
        word = run.removeprefix(" ")
        if len(word) > _LONGEST or not _ENGLISH.fullmatch(word):
            return most
        plain = word.lower()
        tokens = self._plain(plain)
        if tokens is None:
            return most
        # a capital, or anything but a space before it, makes it another word to a tokenizer
        tokens += word != plain
        if run[0] != " ":
            tokens += 1 if len(word) < _LONG else 2
        return min(most, tokens)

    def _plain(self, word: str) -> int | None:
        if word in self._frequent:
            return 1
        rank = self._ranks.get(word)
        if rank is None:
            pieces = self._pieces(word)
            return None if pieces is None else pieces + _CUT
        for below, tokens in _RATES:
            if rank < below:
                return tokens
        return math.ceil(len(word) / _LETTERS) + _MORE

    def _pieces(self, word: str) -> int | None:
        """Return the number of word pieces of a word, longest first; ``None``: it has none."""
        start = count = 0
        while start < len(word):
            mark = "##" if start else ""
            end = next(
                (e for e in range(len(word), start, -1) if mark + word[start:e] in self._ranks),
                None,
            )
            if end is None:
                return None
            start, count = end, count + 1
        return count


def _utf8(text: str) -> int:
    # halves of characters, which UTF-8 cannot write, take three bytes in what providers may send
    return len(text.encode("utf-8", "surrogatepass"))


@cache
def _widest(character: str) -> int:
    return max(_utf8(character), _utf8(unicodedata.normalize("NFKD", character)))
