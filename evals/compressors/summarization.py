"""Summaries by a small model: errors that the guard catches, and cost.

Usage: ``python -m evals.compressors.summarization [--data PATH] [--seed N]``.

Fine-tuned mT5 is not at hand here, so nothing below measures its summaries.

1. The guard: how many sentences of the authors' conclusions it leaves out although they are true of their abstract, and
   how many it lets through after a number, a denial or a drug in them was changed.
2. The cost model of section 5.3 for the packaged prices: where one's own machine saves, and where not.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from evals.compressors.cost import CostModel
from evals.pooled import prices, shown
from orchestrator.question.estimates.savings import machine_dollars
from posology.text.quoting.edges import NEGATIONS
from posology.text.sentences import split
from posology.types import Passage, Usage
from strategies.compression.checked import check
from strategies.compression.wording.drugs import is_drug
from training.gold import rows

#: a word, its punctuation left out
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.,]*\d)")
#: what the models below are charged for: a question, a context of three abstracts, an answer
_QUESTION, _AROUND, _ANSWER, _ABSTRACT, _PASSAGES = 32, 700, 150, 330, 3


def main() -> None:
    """Print all parts."""
    parser = argparse.ArgumentParser(
        prog="evals.compressors.summarization",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    conclusions = list(_conclusions(given.data))
    _guarded(conclusions, given.seed)
    _costs()


def _guarded(conclusions: Sequence[tuple[Passage, str]], seed: int) -> None:
    print("\n1. the guard, on sentences of authors' conclusions against their abstracts")
    rng = random.Random(seed)
    drugs = sorted({word for _, said in conclusions for word in _drugs(said)})
    left_out: list[float] = []
    caught: dict[str, list[float]] = {}
    for passage, said in conclusions:
        for sentence in (one.of(said) for one in split(said)):
            dropped = bool(check(sentence, passage).added)
            left_out.append(dropped)
            if dropped:
                continue
            for kind, wrong in _corrupted(sentence, passage, drugs, rng):
                caught.setdefault(kind, []).append(bool(check(wrong, passage).added))
    print(f"left out although true: {shown(left_out)} of {len(left_out)} sentences")
    for kind, flags in sorted(caught.items()):
        print(f"left out after {kind}: {shown(flags)} of {len(flags)}")


def _corrupted(
    sentence: str, passage: Passage, drugs: Sequence[str], rng: random.Random
) -> Iterator[tuple[str, str]]:
    """The sentence with one thing in it changed, in each way that it can be."""
    if numbers := list(_NUMBER.finditer(sentence)):
        one = rng.choice(numbers)
        wrong = f"{float(one[0]) * 10:g}"
        yield "a number was changed", sentence[: one.start()] + wrong + sentence[one.end() :]
    words = list(_WORD.finditer(sentence))
    if denials := [w for w in words if w[0].lower() in ("not", "no", "never", "without")]:
        one = rng.choice(denials)
        cut = sentence[: one.start()] + sentence[one.end() :].lstrip()
        yield "a denial was dropped", cut
    elif (
        verbs := [
            w for w in words if w[0] in ("is", "was", "are", "were", "did", "does", "may", "can")
        ]
    ) and not any(w[0].lower() in NEGATIONS for w in words):
        one = verbs[0]
        yield "a denial was added", f"{sentence[: one.end()]} not{sentence[one.end() :]}"
    if own := _drugs(sentence):
        others = [name for name in drugs if name not in passage.text.lower()]
        wrong = rng.choice(others)
        yield (
            "a drug was exchanged",
            re.sub(re.escape(own[0]), wrong, sentence, flags=re.IGNORECASE),
        )


def _costs() -> None:
    print(
        f"\n2. dollars a question (section 5.3): {_PASSAGES} abstracts of {_ABSTRACT} tokens, {_AROUND} around them, "
        f"{_ANSWER} of answer; 0.383 s a summary at $0.485 an hour, half of the time at work, 35 % left"
    )
    one = machine_dollars(0.383, Decimal("0.485"), 0.5)
    print(f"a summary: ${one:.3e}")
    print(f"{'':34}{'whole':>11} {'summaries':>11} {'saves':>7} {'kept for good':>14}")
    book = prices()
    for model in (
        "openai:gpt-4o-mini",
        "openai:gpt-4o",
        "anthropic:claude-haiku-4-5",
        "anthropic:claude-sonnet-4-5",
    ):
        costs = [
            book.cost(model, Usage(input=i, output=o)) for i, o in ((1_000_000, 0), (0, 1_000_000))
        ]
        if None in costs:
            continue
        per = [cost / 1_000_000 for cost in costs if cost is not None]
        own = CostModel(
            dollars_per_hour=Decimal("0.485"), seconds=0.383, utilisation=0.5, summaries=_PASSAGES,
            retrieval_price=Decimal(0), input_price=per[0], output_price=per[1],
        )  # fmt: skip
        context = _PASSAGES * _ABSTRACT
        size: dict[str, int] = {
            "question": _QUESTION, "tokens_in": context + _AROUND, "tokens_out": _ANSWER
        }  # fmt: skip
        whole = own.whole(**size)
        less = own.compressed(**size, context=context, left=0.35)
        kept = replace(own, summaries=0.0).compressed(**size, context=context, left=0.35)
        print(
            f"{model:34}{whole.total:11.3e} {less.total:11.3e} {less.saving(whole):7.1%} {kept.saving(whole):14.1%}"
        )


def _conclusions(data: Path) -> Iterator[tuple[Passage, str]]:
    """Abstracts without their conclusion, and the conclusion."""
    for row in rows(data / "pubmedqa_train.jsonl.gz"):
        passage = Passage(
            id=f"pmid:{row['pmid']}", text=" ".join(row["contexts"]), title=row["question"]
        )
        yield passage, row["long_answer"]


def _drugs(text: str) -> list[str]:
    found = Counter(w[0].lower() for w in _WORD.finditer(text) if is_drug(w[0]))
    return sorted(found)


def _words(text: str) -> int:
    return len(text.split())


if __name__ == "__main__":
    main()
