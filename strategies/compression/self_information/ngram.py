"""N-gram model of words with interpolated modified Kneser-Ney smoothing, in numpy.

Source: Chen and Goodman, *An empirical study of smoothing techniques for language modeling* (1999), section 3. The
highest order discounts counts, lower orders discount the number of contexts. N-grams with fewer than ``least``
occurrences are omitted and their mass goes to the shorter context, so that the probabilities of a context sum to 1. A
word seen less than twice is unknown: its bits are those of an unknown word plus those of its letters.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from strategies.compression.self_information.spelling import Spelling

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bits of a digit when only its place is known.
DIGIT_BITS = math.log2(10)

_OUTER = "()[]{}\"'“”‘’«».,;:!?*…"
_DIGIT = re.compile(r"\d")
#: Bits of a word's number; three numbers form one key.
BITS = 20
#: Numbers of unknown words and of a sentence's beginning.
UNKNOWN, BEGIN = 0, 1
#: Words cached with their punctuation.
_REMEMBERED = 500_000


def form(word: str) -> tuple[str, float]:
    """Return the form that a word is counted as, and the bits beyond the form's.

    Forms are lower case without outer punctuation. Numbers are counted by their shape, ``12.5%`` as ``00.0%``;
    each of their digits adds :data:`DIGIT_BITS`.

    Args:
        word: a run of characters without white space.

    Returns:
        The form, never empty, and the bits to add.
    """
    core = word.strip(_OUTER) or word
    lower = core.lower()
    if lower.isalpha() or any(map(str.isalpha, lower)):
        return lower, 0.0
    shape, digits = _DIGIT.subn("0", lower)
    return shape, digits * DIGIT_BITS


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Level:
    """The n-grams of one order, 2 or more."""

    #: the words' numbers, 20 bits each, sorted, shape ``(n,)``, int64
    keys: NDArray[np.int64]
    #: discounted probability of each n-gram
    shares: NDArray[np.float32]
    #: contexts of these n-grams, sorted, shape ``(m,)``, int64
    contexts: NDArray[np.int64]
    #: mass that each context gives to the shorter one
    rests: NDArray[np.float32]


class NgramModel:
    """Model of the bits of each word of a sentence; built by ``fit.learn`` or :meth:`from_bytes`."""

    def __init__(
        self,
        forms: Sequence[str],
        unigrams: NDArray[np.float32],
        levels: Sequence[Level],
        spelling: Spelling,
        *,
        words: int,
    ) -> None:
        self._forms = tuple(forms)
        self._numbers = {form: i for i, form in enumerate(forms)}
        self._unigrams = unigrams
        self._levels = tuple(levels)
        self._spelling = spelling
        self._known: dict[str, tuple[int, float]] = {}
        #: words that it was trained on
        self.words = words

    @property
    def order(self) -> int:
        """Return the words of its longest n-grams."""
        return 1 + len(self._levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of known forms, and of n-grams of each order from 2."""
        return (len(self._forms), *(len(level.keys) for level in self._levels))

    def __contains__(self, shape: str) -> bool:
        """Return whether it knows a form, see :func:`form`."""
        return shape in self._numbers

    def spelled(self, shape: str) -> float:
        """Return the bits of the letters of an unknown form."""
        return float(self._spelling.bits([shape])[0])

    def bits(self, words: Sequence[str], firsts: Sequence[int]) -> NDArray[np.float32]:
        """Return the bits of each word after those before it in its sentence.

        Args:
            words: words of one or many sentences, with their punctuation.
            firsts: the first word of each sentence.

        Returns:
            Bits, shape ``(len(words),)``.
        """
        if not words:
            return np.zeros(0, dtype=np.float32)
        numbers, extra = self._look_up(words)
        chance = self._unigrams[numbers]
        for level, keys in zip(self._levels, ngrams(numbers, firsts, self.order), strict=True):
            rest = _found(level.contexts, level.rests, keys >> BITS, missing=1.0)
            chance = chance * rest + _found(level.keys, level.shares, keys, missing=0.0)
        return np.asarray(-np.log2(chance) + extra, dtype=np.float32)

    def _look_up(self, words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        known = self._known
        unknown: dict[str, tuple[str, float]] = {}
        for word in set(words).difference(known):
            shape, beyond = form(word)
            number = self._numbers.get(shape)
            if number is None:
                unknown[word] = (shape, beyond)
            else:
                known[word] = (number, beyond)
        spelled = self._spelling.bits([shape for shape, _ in unknown.values()]).tolist()
        for (word, (_, beyond)), bits in zip(unknown.items(), spelled, strict=True):
            known[word] = (UNKNOWN, bits + beyond)
        found = [known[word] for word in words]
        numbers = np.fromiter((number for number, _ in found), dtype=np.int64, count=len(found))
        extra = np.fromiter((bits for _, bits in found), dtype=np.float32, count=len(found))
        return numbers, extra

    def to_bytes(self) -> bytes:
        """Return the model as compressed bytes."""
        head = {"words": self.words, "order": self.order}
        arrays: dict[str, Any] = {
            "head": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
            "forms": np.frombuffer(
                "\n".join(self._forms[2:]).encode(errors="surrogatepass"), dtype=np.uint8
            ),
            "unigrams": self._unigrams,
            "spelling": self._spelling.counts,
        }
        for n, level in enumerate(self._levels, start=2):
            # differences of sorted keys are small and compress well
            arrays[f"keys{n}"] = np.diff(level.keys, prepend=0)
            arrays[f"shares{n}"] = np.log2(level.shares).astype(np.float16)
            arrays[f"contexts{n}"] = np.diff(level.contexts, prepend=0)
            arrays[f"rests{n}"] = level.rests.astype(np.float16)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> NgramModel:
        """Read the bytes of :meth:`to_bytes`.

        Raises:
            ValueError: the bytes have another format.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                head = json.loads(arrays["head"].tobytes())
                known = arrays["forms"].tobytes().decode(errors="surrogatepass")
                levels = [
                    Level(
                        keys=np.cumsum(arrays[f"keys{n}"]),
                        shares=np.exp2(arrays[f"shares{n}"].astype(np.float32)),
                        contexts=np.cumsum(arrays[f"contexts{n}"]),
                        rests=arrays[f"rests{n}"].astype(np.float32),
                    )
                    for n in range(2, head["order"] + 1)
                ]
                return cls(
                    ["", "", *(known.split("\n") if known else ())],
                    arrays["unigrams"],
                    levels,
                    Spelling(arrays["spelling"]),
                    words=head["words"],
                )
        except (
            ValueError,
            OSError,
            EOFError,
            KeyError,
            TypeError,
            zlib.error,
            zipfile.BadZipFile,
        ) as error:
            raise ValueError(f"the bytes are no n-grams: {error}") from error


def ngrams(
    numbers: NDArray[np.int64], firsts: Sequence[int] | NDArray[np.int64], order: int
) -> list[NDArray[np.int64]]:
    """Return the n-gram that ends at each word, as one key, for each n from 2 to ``order``.

    Args:
        numbers: numbers of the words, shape ``(n,)``, each of at most :data:`BITS` bits.
        firsts: the first word of each sentence; it is padded with :data:`BEGIN`.
        order: 1 to 3.
    """
    before = order - 1
    begins = np.zeros(len(numbers), dtype=np.int64)
    begins[np.asarray(firsts, dtype=np.int64)] = before
    at = np.arange(len(numbers)) + np.cumsum(begins)
    lined = np.full(len(numbers) + int(begins.sum()), BEGIN, dtype=np.int64)
    lined[at] = numbers
    keys = [numbers]
    for n in range(1, order):
        keys.append((lined[at - n] << (BITS * n)) | keys[-1])
    return keys[1:]


def _found(
    table: NDArray[np.int64],
    values: NDArray[np.float32],
    keys: NDArray[np.int64],
    *,
    missing: float,
) -> NDArray[np.float32]:
    """Return the value of each key from a sorted table."""
    if not len(table):
        return np.full(len(keys), missing, dtype=np.float32)
    # sorted look-ups stay in the processor's cache, which is worth the sorting
    order = np.argsort(keys)
    places = np.empty(len(keys), dtype=np.int64)
    places[order] = np.searchsorted(table, keys[order])
    places[places == len(table)] = 0
    return np.where(table[places] == keys, values[places], np.float32(missing))
