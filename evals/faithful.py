"""Measures which sentences the check of summaries lets pass, and which wrong ones it catches.

Usage: ``python -m evals.faithful [--data PATH] [--abstracts N]``.

:func:`strategies.compression.checked.bears_out` decides for each sentence of a summary. The texts are abstracts of
PubMedQA with separate conclusions of their authors:

- let pass: sentences of the abstracts themselves, and of the conclusions, which are summaries in other words. A
  conclusion that says more than the abstract is rightly dropped, so this figure is a lower bound;
- caught: sentences of the abstracts with one error: a number that is nowhere in the abstract, another unit, a reversed
  comparison, a negation removed or added, another drug.

Each line has its 95 % bootstrap interval over sentences. The first 200 abstracts are skipped, because the rules were
written with them.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from evals.pooled import shown
from posology.text.sentences import split
from posology.types import Passage
from strategies.compression.checked import bears_out
from strategies.compression.wording.drugs import is_drug
from training.gold import rows

_FILE = "pubmedqa_train.jsonl.gz"
_LOOKED_AT = 200
_DRUGS = ("apixaban", "metformin", "atorvastatin", "amoxicillin", "ibuprofen", "sertraline")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:\.\d+)?(?![\w.,-]*\d)")
_UNIT = re.compile(r"(?<=\d )(mg|ml|days|weeks|hours|kg|cm|mm|g)\b|(?<=\d)%")
_OTHER = {"%": " mg", "mg": "g", "ml": "l", "days": "hours", "weeks": "days", "hours": "days"}
_DENIAL = re.compile(r"\b(?:not|no) ")
_DENIABLE = re.compile(r"\b(?:was|were|is|are|had|has|have|did|does|could)\b (?!not\b|no\b)")
_COMPARED = re.compile(r"[<>]")

Spoil = Callable[[str, str, random.Random], str | None]


def _number(sentence: str, text: str, rng: random.Random) -> str | None:
    found = list(_NUMBER.finditer(sentence))
    if not found:
        return None
    at = rng.choice(found)
    for _ in range(100):
        other = str(rng.randrange(2, 1_000))
        if not re.search(rf"(?<!\d){other}(?!\d)", text):
            return sentence[: at.start()] + other + sentence[at.end() :]
    return None


def _unit(sentence: str, text: str, rng: random.Random) -> str | None:  # noqa: ARG001
    return _at_one(_UNIT, sentence, rng, lambda found: _OTHER.get(found, "mg"))


def _comparison(sentence: str, text: str, rng: random.Random) -> str | None:  # noqa: ARG001
    return _at_one(_COMPARED, sentence, rng, lambda found: "<" if found == ">" else ">")


def _denial_out(sentence: str, text: str, rng: random.Random) -> str | None:  # noqa: ARG001
    return _at_one(_DENIAL, sentence, rng, lambda _: "")


def _denial_in(sentence: str, text: str, rng: random.Random) -> str | None:  # noqa: ARG001
    return _at_one(_DENIABLE, sentence, rng, lambda found: f"{found}not ")


def _drug(sentence: str, text: str, rng: random.Random) -> str | None:
    named = [m for m in _WORD.finditer(sentence) if is_drug(m[0])]
    others = [drug for drug in _DRUGS if drug not in text.lower()]
    if not named or not others:
        return None
    at = rng.choice(named)
    return sentence[: at.start()] + rng.choice(others) + sentence[at.end() :]


def _at_one(
    pattern: re.Pattern[str], sentence: str, rng: random.Random, change: Callable[[str], str]
) -> str | None:
    found = list(pattern.finditer(sentence))
    if not found:
        return None
    at = rng.choice(found)
    return sentence[: at.start()] + change(at[0]) + sentence[at.end() :]


#: ways to make a sentence wrong
SPOILED: dict[str, Spoil] = {
    "another number": _number,
    "another unit": _unit,
    "a comparison turned round": _comparison,
    "a denial taken out": _denial_out,
    "a denial put in": _denial_in,
    "another drug": _drug,
}


def _abstracts(data: Path, count: int) -> Iterator[tuple[Passage, str]]:
    for i, row in enumerate(islice(rows(data / _FILE), _LOOKED_AT, _LOOKED_AT + count)):
        yield Passage(id=f"a:{i}", text=" ".join(row["contexts"])), row["long_answer"]


def _sentences(text: str) -> list[str]:
    return [sentence.of(text) for sentence in split(text)]


def main(argv: list[str] | None = None) -> int:
    """Check, and print a table."""
    parser = argparse.ArgumentParser(
        prog="evals.faithful",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--abstracts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    if not (options.data / _FILE).exists():
        sys.exit(f"{options.data} has no {_FILE}. Pass --data with the folder of the data sets.")
    rng = random.Random(options.seed)
    passed: dict[str, list[float]] = {"abstract's own": [], "authors' conclusion": []}
    caught: dict[str, list[float]] = {kind: [] for kind in SPOILED}
    seconds: list[float] = []
    for passage, conclusion in _abstracts(options.data, options.abstracts):
        own = _sentences(passage.text)
        passed["abstract's own"] += [bears_out(passage, one) for one in own]
        started = time.perf_counter()
        of_authors = _sentences(conclusion)
        passed["authors' conclusion"] += [bears_out(passage, one) for one in of_authors]
        seconds.append((time.perf_counter() - started) / len(of_authors))
        for kind, spoil in SPOILED.items():
            wrong = [spoil(one, passage.text, rng) for one in own]
            caught[kind] += [not bears_out(passage, one) for one in wrong if one is not None]
    print(f"{len(seconds)} abstracts; {1_000 * sum(seconds) / len(seconds):.1f} ms a sentence")
    print("\n| let pass | sentences | share |\n| --- | --- | --- |")
    for kind, values in passed.items():
        print(f"| {kind} | {len(values)} | {shown(values)} |")
    print("\n| caught | sentences | share |\n| --- | --- | --- |")
    for kind, values in caught.items():
        print(f"| {kind} | {len(values)} | {shown(values) if values else '-'} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
