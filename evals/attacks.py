"""Attacks gold claims by rule, and counts which attacked claims are still called supported.

Usage: ``python -m evals.attacks [--data PATH] [--claims N] [--rules]``.

Pairs of a claim and the sentences that people marked as its support are taken from SciFact; the text is the sentences with
their neighbours, as in the check of answers. Each attack changes one thing of the claim: a number, a direction, a drug, a
population, or a negation (added or taken out). Attacks are spread over the kinds as evenly as the claims allow, with a seed.
The first figure of a kind is the share of attacked claims that are not called supported; the last line has the share of
unattacked claims that are. Intervals are 95 % bootstrap intervals over documents. ``aside`` are documents that neither
training nor calibration of the judge has seen.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evals.support.claims import FILES, Gold, scifact
from evals.support.measure import judge_of, over_documents, supports
from orchestrator.environment import prepare_libraries
from posology.seams import SupportJudge
from posology.types import Backing
from strategies.compression.wording.drugs import is_drug
from training.gold import need

_DRUGS = ("apixaban", "metformin", "atorvastatin", "amoxicillin", "ibuprofen", "sertraline")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:\.\d+)?(?![\w.,-]*\d)")
_DENIAL = re.compile(r"\b(?:not|no) ")
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|can|does|do|did|may|could|should)\b(?! not\b)")
#: verbs of SciFact's claims, which take "does not" or "do not"
_THIRD = re.compile(
    r"\b(affect|cause|decrease|enhance|improve|increase|induce|inhibit|lead|lower|predict|prevent|promote|protect|reduce|"
    r"regulate|require|suppress)s\b"
)
#: opposite of each word of direction, where form and place in the sentence allow the swap
_OPPOSITES = (
    "increase decrease", "increases decreases", "increased decreased", "increasing decreasing", "higher lower",
    "high low", "more less", "greater smaller", "improves worsens", "improved worsened", "improve worsen",
    "longer shorter", "reduces increases", "reduced increased", "reduce increase", "lowers raises", "enhances diminishes",
    "enhanced diminished", "promotes inhibits", "promote inhibit", "inhibits activates", "inhibit activate",
    "activates inhibits", "activated inhibited", "activation inhibition", "inhibition activation", "induces suppresses",
    "positive negative", "superior inferior", "effective ineffective", "better worse", "prevents promotes",
    "suppresses stimulates", "elevated reduced", "upregulates downregulates",
)  # fmt: skip
_BACK: dict[str, str] = {b: a for a, b in map(str.split, _OPPOSITES)}
_FORTH: dict[str, str] = {pair.split()[0]: pair.split()[1] for pair in _OPPOSITES}
_FLIPS = _BACK | _FORTH
_SWAPS = {
    "children": "adults", "child": "adult", "adults": "children", "adult": "pediatric", "infants": "adults",
    "women": "men", "men": "women", "female": "male", "male": "female", "females": "males", "males": "females",
    "pregnant": "elderly", "maternal": "paternal", "mice": "rats", "mouse": "rat", "rats": "mice", "murine": "porcine",
    "rat": "mouse", "zebrafish": "mice", "yeast": "mouse", "adolescents": "elderly", "elderly": "adolescent",
    "preterm": "elderly", "neonates": "adults", "newborns": "adults", "pediatric": "adult",
}  # fmt: skip
Attack = Callable[[str, str, random.Random], str | None]


def _replaced(
    pattern: re.Pattern[str],
    change: Callable[[str], str | None],
    claim: str,
    text: str,  # noqa: ARG001 - the same form for all attacks
    rng: random.Random,
) -> str | None:
    """Change one match, in the case of its first letter; ``None``: nothing can be changed."""
    found = [(m, made) for m in pattern.finditer(claim) if (made := change(m[0])) is not None]
    if not found:
        return None
    at, made = rng.choice(found)
    if at[0][0].isupper():
        made = made[:1].upper() + made[1:]
    return claim[: at.start()] + made + claim[at.end() :]


def _number(claim: str, text: str, rng: random.Random) -> str | None:
    free = [n for n in range(2, 1_000) if not re.search(rf"(?<!\d){n}(?!\d)", text)]
    return _replaced(_NUMBER, lambda _: str(rng.choice(free)), claim, text, rng)


def _drug(claim: str, text: str, rng: random.Random) -> str | None:
    others = [drug for drug in _DRUGS if drug not in text.lower()]

    def other(word: str) -> str | None:
        return rng.choice(others) if others and is_drug(word) else None

    return _replaced(_WORD, other, claim, text, rng)


def _denial_in(claim: str, text: str, rng: random.Random) -> str | None:
    if _DENIAL.search(claim):
        return None
    verb = _replaced(_VERB, lambda found: f"{found} not", claim, text, rng)
    return verb or _replaced(_THIRD, lambda found: f"does not {found[:-1]}", claim, text, rng)


#: ways to make a claim wrong
ATTACKS: Mapping[str, Attack] = {
    "number": _number,
    "direction": partial(_replaced, _WORD, lambda word: _FLIPS.get(word.lower())),
    "drug": _drug,
    "population": partial(_replaced, _WORD, lambda word: _SWAPS.get(word.lower())),
    "negation dropped": partial(_replaced, _DENIAL, lambda _: ""),
    "negation added": _denial_in,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Attacked:
    """A claim that an attack made wrong."""

    kind: str
    gold: Gold


def attacked(gold: Sequence[Gold], count: int, seed: int) -> list[Attacked]:
    """Return so many attacked claims, kind by kind in turn, each claim and document at most once a kind."""
    made: dict[str, list[Attacked]] = {}
    for kind, attack in ATTACKS.items():
        rng = random.Random(f"attacks:{seed}:{kind}")
        seen: dict[tuple[str, str], Attacked] = {}
        for one in gold:
            claim = attack(one.claim, one.around, rng)
            if claim is not None and claim != one.claim:
                seen.setdefault((one.document, claim), Attacked(kind=kind, gold=one.saying(claim)))
        made[kind] = list(seen.values())
        rng.shuffle(made[kind])
    chosen: list[Attacked] = []
    while len(chosen) < count and any(made.values()):
        for some in made.values():
            if some and len(chosen) < count:
                chosen.append(some.pop())
    return chosen


def main(argv: list[str] | None = None) -> int:
    """Attack, and print a table."""
    parser = argparse.ArgumentParser(
        prog="evals.attacks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--claims", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", action="store_true", help="without the judge")
    options = parser.parse_args(argv)
    need(options.data, *FILES)
    prepare_libraries()
    gold = [one for one in scifact(options.data) if one.supports]
    judge = None if options.rules else judge_of()
    if judge is None:
        print("without a judge: rules alone")
    wrong = attacked(gold, options.claims, options.seed)
    _print(wrong, gold, judge)
    return 0


def _print(wrong: Sequence[Attacked], gold: Sequence[Gold], judge: SupportJudge | None) -> None:
    columns: dict[str, tuple[list[bool], list[bool]]] = {}
    for name, used in {"rules": None, "rules and judge": judge}.items():
        if name == "rules" or used is not None:
            every = supports([*(one.gold for one in wrong), *gold], used)
            called = [one.backing is Backing.SUPPORTED for one in every]
            columns[name] = (called[: len(wrong)], called[len(wrong) :])
    print(
        f"| attack | claims | {' | '.join(f'not called supported: {name}' for name in columns)} |"
    )
    print("| --- " * (2 + len(columns)) + "|")
    places: dict[str, list[int]] = defaultdict(list)
    for i, one in enumerate(wrong):
        for row in (one.kind, "all", *(("all, aside",) if one.gold.aside else ())):
            places[row].append(i)
    for row in [*ATTACKS, "all", "all, aside"]:
        where = places[row]
        if not where:
            continue
        cells = [
            over_documents([(wrong[i].gold.document, not called[i]) for i in where])
            for called, _ in columns.values()
        ]
        print(f"| {row} | {len(where)} | {' | '.join(cells)} |")
    for row, some in {
        "**none: called supported**": range(len(gold)),
        "**none, aside: called supported**": [i for i, one in enumerate(gold) if one.aside],
    }.items():
        cells = [
            over_documents([(gold[i].document, called[i]) for i in some])
            for _, called in columns.values()
        ]
        print(f"| {row} | {len(some)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
