"""A word n-gram model with interpolated modified Kneser-Ney smoothing, in numpy.

Chen and Goodman, *An empirical study of smoothing techniques for language modeling* (1999), section 3:
the highest order discounts counts, the lower ones discount in how many contexts an n-gram was seen. N-grams
that came less than ``least`` times are left out and their mass goes to the shorter context, so that
the probabilities of a context still sum to 1. A word that came less than twice is an unknown word; what it
tells is that it is one, and the bits of its letters.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from strategies.compression.self_information.forms import form
from strategies.compression.self_information.spelling import Spelling

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: bits of a word's number: three of them are one key
BITS = 20
#: the numbers of unknown words, and of a sentence's beginning
UNKNOWN, BEGIN = 0, 1
#: words that are remembered with their punctuation
_REMEMBERED = 500_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Level:
    """The n-grams of one order, of two words or more."""

    #: sorted, shape ``(n,)``, int64: the words' numbers, 20 bits each
    keys: NDArray[np.int64]
    #: discounted probability of each
    shares: NDArray[np.float32]
    #: contexts of these n-grams, sorted, shape ``(m,)``, int64
    contexts: NDArray[np.int64]
    #: what each leaves to the shorter context
    rests: NDArray[np.float32]


class NgramModel:
    """Bits that each word of a sentence tells. Build it with :func:`learn` or :meth:`from_bytes`."""

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
        #: words that it learned from
        self.words = words

    @property
    def order(self) -> int:
        """Words of its longest n-grams."""
        return 1 + len(self._levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Forms that it knows, and n-grams of each order from 2."""
        return (len(self._forms), *(len(level.keys) for level in self._levels))

    def __contains__(self, shape: str) -> bool:
        """Whether it knows a form, see :func:`form`."""
        return shape in self._numbers

    def spelled(self, shape: str) -> float:
        """Bits of the letters of a form that it does not know."""
        return float(self._spelling.bits([shape])[0])

    def bits(self, words: Sequence[str], firsts: Sequence[int]) -> NDArray[np.float32]:
        """What each word tells after those before it in its sentence.

        Args:
            words: of one or many sentences, with their punctuation.
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
        """All of it, compressed."""
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
            # differences of sorted keys are small, and small numbers compress
            arrays[f"keys{n}"] = np.diff(level.keys, prepend=0)
            arrays[f"shares{n}"] = np.log2(level.shares).astype(np.float16)
            arrays[f"contexts{n}"] = np.diff(level.contexts, prepend=0)
            arrays[f"rests{n}"] = level.rests.astype(np.float16)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> NgramModel:
        """What :meth:`to_bytes` made.

        Raises:
            ValueError: it is something else.
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
            raise ValueError(f"these are no n-grams: {error}") from error


def ngrams(
    numbers: NDArray[np.int64], firsts: Sequence[int] | NDArray[np.int64], order: int
) -> list[NDArray[np.int64]]:
    """The n-gram that each word ends, as one key, for each n from 2 to ``order``.

    Args:
        numbers: of the words, shape ``(n,)``, each of at most :data:`BITS` bits.
        firsts: the first word of each sentence; :data:`BEGIN` stands in front of it as often as need be.
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
    """The value of each key, by a sorted table."""
    if not len(table):
        return np.full(len(keys), missing, dtype=np.float32)
    # sorted look-ups stay in the cache, which is worth the sorting
    order = np.argsort(keys)
    places = np.empty(len(keys), dtype=np.int64)
    places[order] = np.searchsorted(table, keys[order])
    places[places == len(table)] = 0
    return np.where(table[places] == keys, values[places], np.float32(missing))
