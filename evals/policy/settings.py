"""Chooses the router's settings by what a right answer costs simulated models, and checks the shipped ones.

Usage: ``python -m evals.policy [--sets SET …] [--questions N] [--k K] [--data PATH] [--work PATH] [--whole]``.

**Every figure is simulated.** No language model answers: simulated models (``docs/concepts/simulated-models.md``) do,
one for each profile, from gold labels. They are billed as gpt-4o-mini for the prompts that a real one would get.

Sets of questions, none about a document that the pruner was trained or tuned on:

* ``bioasq`` and ``pubmedqa``: see ``evals/policy/medical.py``, also for what counts as a right answer after compression;
* ``squad``: over the pooled paragraphs of the articles that are new to the pruner.

One half of the documents chooses, the other half is reported. The cheapest setting, by dollars for a right answer
averaged over profiles, whose answers are wrong no more often than those of direct RAG over all passages, is shown for the
medical sets together, for SQuAD, and for all of them. Preflight's packaged calibration learned from PubMedQA's questions,
so that ``issue`` is judged on BioASQ and SQuAD.

A passage that is shown in part counts as that part of the context's length; with ``--whole`` as a whole passage, so
that compressing spares a simulated model nothing.

Fails if over all sets another setting is better than the shipped default on both halves: a right answer is cheaper, on
the other half beyond chance (paired bootstrap, 95 %), at least as many answers are right, and no more are wrong. The
cheapest right answer alone would not do: a question that is refused at once costs next to nothing there. Nor do settings
whose first step shows one passage: one passage answers each question here, so that none can contradict it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product, zip_longest

import anyio
import numpy as np

from evals.policy import medical
from evals.policy.bench import SHIPPED, Asked, Bench
from evals.policy.report import (
    DIRECT,
    Arms,
    Measured,
    admitted,
    better,
    census,
    cheapest,
    dearer,
    halves,
    part,
    recall,
    regrets,
    table,
)
from evals.pooled import FILE, SHADOW, arguments, open_pool
from policies.affordable import PARTITIONED, WHOLE
from posology.types import Dose
from training.gold import need, rows
from training.preflight import INDEX

SQUAD, BIOASQ, PUBMEDQA = "squad", "bioasq", "pubmedqa"
#: the group of all sets
ALL = "all"
#: questions that a choice is made for → their sets
GROUPS: Mapping[str, tuple[str, ...]] = {
    "medical": (BIOASQ, PUBMEDQA),
    "SQuAD": (SQUAD,),
    ALL: (BIOASQ, PUBMEDQA, SQUAD),
}
#: a first step that shows no disagreement between passages: measured, and never better
ONE = "start=1,factor=4"
#: settings of the router by what they set; every combination is tried
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "keep": ("keep=1", "keep=own", "keep=0.4", "keep=0.2"),
    "steps": (ONE, "start=2,factor=2", "start=2,factor=4", "start=4,factor=2", "start=16"),
    "issue": ("issue=0", "issue=0.3", "issue=0.5", "preflight=off"),
    "escalation": ("escalate=on", "escalate=search", "escalate=off"),
}
#: the shipped ones
DEFAULTS = {
    "keep": "keep=1",
    "steps": "start=2,factor=4",
    "issue": "issue=0.5",
    "escalation": "escalate=on",
}
#: what a budget that is short may lead to: shares of all passages, or fewer passages
STEPPED = (
    *(Dose(strategy="compressed", keep=share) for share in (0.4, 0.2, 0.1)),
    *(Dose(strategy=WHOLE, passages=passages) for passages in (4, 2, 1)),
)


def arms() -> Iterator[str]:
    """The shipped policy, and the router with every combination of settings."""
    yield SHIPPED
    for chosen in product(*SETTINGS.values()):
        yield f"{SHIPPED}:{','.join(chosen)}"


def alone() -> Iterator[str]:
    """The shipped policy with one other setting."""
    for kind, values in SETTINGS.items():
        for value in values:
            if value != DEFAULTS[kind]:
                yield f"{SHIPPED}:{','.join((DEFAULTS | {kind: value}).values())}"


def marginals(found: Arms, allowed: Sequence[str]) -> Iterator[str]:
    """For each value of a setting: the cheapest admitted policy that has it."""
    for kind, values in SETTINGS.items():
        for value in values:
            with_it = [name for name in allowed if f",{value}," in f",{name.partition(':')[2]},"]
            if not with_it:
                yield f"{kind}: {value}: no policy is admitted"
                continue
            best = cheapest(found, with_it)
            yield f"{kind}: {value}: {found[best].price:.3f}, wrong {found[best].errors:.3f} ({best})"


async def measure(bench: Bench) -> dict[str, Measured]:
    """Every arm on every question, the doses for all among them."""
    found = {}
    started = time.perf_counter()
    everyone = {
        DIRECT: Dose(strategy=WHOLE),
        "compressed, own share": Dose(strategy="compressed"),
        PARTITIONED: Dose(strategy=PARTITIONED),
    } | {f"{d.strategy} {d.keep or d.passages}": d for d in STEPPED}
    for name, dose in everyone.items():
        found[name] = Measured.of(await bench.run([dose] * len(bench.asked)))
    for name in arms():
        found[name] = Measured.of(await bench.run(bench.doses(name)))
    print(f"measured in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return found


async def ask(name: str, given: argparse.Namespace) -> list[Asked]:
    """Return a set's questions with k passages and what answers; questions without any in the index are left out."""
    started = time.perf_counter()
    found = await (squad(given) if name == SQUAD else medically(name, given))
    print(f"{name}: {len(found)} questions, {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return found


async def squad(given: argparse.Namespace) -> list[Asked]:
    """SQuAD's first question of every paragraph, then the second ones."""
    pool = open_pool(given.data, given.work, unseen=True)
    starts = {
        qa["id"]: [answer["answer_start"] for answer in qa["answers"]]
        for row in rows(given.data / FILE)
        for qa in row["qas"]
    }
    turns = zip_longest(*pool.questions)
    found = []
    for question in [one for turn in turns for one in turn if one is not None][: given.questions]:
        retrieval = await pool.retrieve(question, given.k)
        wider = await pool.retriever.further(retrieval, given.k)
        gold = {
            one.passage.id: [
                s for s in one.sentences if any(s.start <= at < s.end for at in starts[question.id])
            ]
            for one in wider.passages
            if one.passage.id == question.passage
        }
        found.append(
            Asked(
                origin=SQUAD,
                id=question.id,
                documents=frozenset({question.passage}),
                retrieval=retrieval,
                wider=wider,
                gold=gold,
            )
        )
    return found


async def medically(name: str, given: argparse.Namespace) -> list[Asked]:
    """The first questions of BioASQ or PubMedQA."""
    if name == BIOASQ:
        retriever, posed = medical.bioasq(given.data, given.work)
    else:
        retriever, posed = medical.pubmedqa(given.data, given.work / INDEX.name)
    found = []
    for one in posed[: given.questions]:
        retrieval = await retriever.retrieve(one.query, given.k, "fused")
        wider = await retriever.further(retrieval, given.k)
        found.append(
            Asked(
                origin=name,
                id=one.id,
                documents=one.documents,
                retrieval=retrieval,
                wider=wider,
                gold=one.gold(wider),
            )
        )
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 where another setting is better than the shipped one."""
    parser = arguments("evals.policy", __doc__, questions=200)
    sets = (BIOASQ, PUBMEDQA, SQUAD)
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets, help="default: all")
    parser.add_argument("--k", type=int, default=8, help="passages a question")
    parser.add_argument("--whole", action="store_true", help="count shown parts as whole passages")
    given = parser.parse_args(argv)
    need(given.data, FILE)
    asked = [one for name in given.sets for one in anyio.run(ask, name, given)]
    # all indices have vectors of the packaged embedder
    bench = Bench(asked, partial=not given.whole)
    found = anyio.run(measure, bench)
    print(f"SIMULATED models, prices of {SHADOW}, {given.k} passages a question")
    origins = np.array([one.origin for one in asked])
    chooses, aside = halves(asked, given.seed)
    fails = False
    for group, names in GROUPS.items():
        if set(names) <= set(given.sets):
            of = np.flatnonzero(np.isin(origins, names))
            first, other = np.intersect1d(chooses, of), np.intersect1d(aside, of)
            halved = part(found, first), part(found, other)
            report(f"{group}: {', '.join(names)}", *halved)
            fails |= beaten(group, *halved) and group == ALL
    for name in given.sets:
        own = np.flatnonzero(origins == name)
        print(f"\n## {name}: {len(own)} questions\n", *recall(bench, own), sep="\n")
        print(f"\n{SHIPPED}: {census(bench, own)}")
        other = np.intersect1d(aside, own)
        print("", *table(part(found, other), [DIRECT, "compressed, own share", SHIPPED, *alone()]), sep="\n")  # fmt: skip
    if fails:
        print(f"{SHIPPED} is not the cheapest at its error rate", file=sys.stderr)
    return int(fails)


def report(title: str, chooses: Arms, aside: Arms) -> None:
    """Print a group's tables."""
    allowed = admitted(chooses)
    chosen = cheapest(chooses, allowed)
    everyone = [name for name in aside if not name.startswith(SHIPPED)]
    print(f"\n# {title}\n\nchosen on {chooses[DIRECT].cost.shape[1]} questions: {chosen}\n")
    print(*marginals(chooses, allowed), "", sep="\n")
    print(f"on {aside[DIRECT].cost.shape[1]} other questions:\n")
    print(*table(aside, [*everyone, SHIPPED, *alone(), chosen]), "", sep="\n")
    own = f"{SHIPPED}:{','.join((DEFAULTS | {'keep': 'keep=own'}).values())}"
    print(*regrets(aside, list(dict.fromkeys([SHIPPED, own, chosen, DIRECT]))), sep="\n")
    for other in (DIRECT, "compressed, own share", chosen):
        ratio, low, high = dearer(aside[SHIPPED], aside[other])
        print(f"a right answer of {SHIPPED} costs ×{ratio:.3f} [{low:.3f}, {high:.3f}] one of {other}")  # fmt: skip


def beaten(group: str, chooses: Arms, aside: Arms) -> bool:
    """Print the settings that are better than the shipped ones on both halves, and return whether there are any."""
    found = False
    on_both = set(better(aside, SHIPPED)).intersection(better(chooses, SHIPPED))
    for name in aside:
        if name not in on_both or ONE in name:
            continue
        ratio, low, high = dearer(aside[SHIPPED], aside[name])
        if low > 1:
            found = True
            print(f"{group}: a right answer of {SHIPPED} costs ×{ratio:.3f} [{low:.3f}, {high:.3f}] one of {name}, which is right as often and wrong as seldom")  # fmt: skip
    return found
