"""Measures the offline reader: likeness of words (``late``) beside the cross-encoder, on documents kept aside.

Usage: ``python -m evals.reader [--only NAME …] [--questions N] [--dev] [--weights FILE]``

One table; each line names the option that measures it alone. Intervals are 95 % bootstrap intervals over documents.
``--dev`` prints what the thresholds are chosen by, on other documents.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LogisticRegression

from evals.reader import conflicts as reader_conflicts
from evals.reader.cases import FILES, FINDS, Case, Data
from evals.reader.methods import Method, candidates, crossed, late
from evals.reader.sets import Pair, sets
from orchestrator.settings.values import READ
from posology.llm.offline.answering import Evidence
from posology.llm.offline.choice import choose
from posology.llm.offline.verdict import lean, verdict
from posology.reading.crossencoder import FILE, MODELS, CrossEncoder
from posology.reading.judge import Judge
from posology.types import Excerpt
from training.gold import DATA, need

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: share of the answerable dev questions that a threshold keeps at least
KEEPS = 0.90
DRAWS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One figure by each method."""

    name: str
    #: what measures it: ``--only`` this
    only: str
    #: by method: a value a question, and its document
    values: dict[str, list[tuple[str, float]]]
    aim: str = ""


def best_sentence(cases: Sequence[Case], method: Method, n: int) -> list[tuple[str, float]]:
    """Return whether a sentence that answers is among the best ``n``."""
    found = []
    for case in cases:
        best = method.read(case.question, case.excerpts).read[:n]
        places = {(one.excerpt, _number(case, one.excerpt, one.sentence.start)) for one in best}
        found.append((case.document, float(bool(places & case.gold))))
    return found


def answered(cases: Sequence[Case], method: Method) -> list[tuple[str, float]]:
    """Return whether each question is answered."""
    found = []
    for case in cases:
        scores = method.read(case.question, case.excerpts)
        found.append((case.document, float(bool(choose(scores)))))
    return found


def finds(cases: Sequence[Case], method: Method) -> list[tuple[str, float]]:
    """Return whether the first quote is of the results or the conclusion, of the questions answered."""
    found = []
    for case in cases:
        scores = method.read(case.question, case.excerpts)
        chosen = choose(scores)
        if chosen:
            section = case.sections[_number(case, 0, chosen[0].sentence.start)]
            found.append((case.document, float(section.upper().startswith(FINDS))))
    return found


def squad(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield whether the best sentence holds the answer."""
    cases = data.squad()
    yield _line("SQuAD: best sentence holds the answer", "squad", ".93", methods, lambda m: best_sentence(cases, m, 1))  # fmt: skip


def articles(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield whether the best sentences of whole articles are annotated."""
    cases = data.articles()
    for n, aim in ((1, ".40"), (3, ".65")):
        name = f"Evidence Inference, whole articles: annotated span in the best {n}"
        yield _line(name, "articles", aim, methods, partial(_best, cases, n))
    yield Line(
        name="Evidence Inference, whole articles: annotated span among the candidates",
        only="articles",
        values={f"{tokens:,} tokens": _read(cases, tokens) for tokens in (1_000, READ, 4_000)},
    )


def written(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield whether the best sentences are those that people named for their question, in its abstract."""
    cases = data.written()
    for n, aim in ((1, ".75"), (3, "")):
        name = f"written: a sentence that answers in the best {n}"
        yield _line(name, "written", aim, methods, partial(_best, cases, n))


def near_misses(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield what is answered with the passage that answers, and refused without it."""
    made_by = {"SQuAD": data.squad, "PubMedQA": data.pubmedqa, "written": data.written}
    for name, made in made_by.items():
        yield _line(f"{name}: answerable answered", "near-misses", ".90", methods, partial(answered, made()))  # fmt: skip
        yield _line(f"{name}: near misses refused", "near-misses", ".75", methods, partial(_refused, made(near=True)))  # fmt: skip


def sample(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield what is refused of the sample's questions."""
    cases = data.sample()
    able = [case for case in cases if case.answerable]
    unable = [case for case in cases if not case.answerable]
    yield _line("sample: answerable refused", "sample", "≤ .15", methods, partial(_refused, able))
    yield _line("sample: unanswerable refused", "sample", "1", methods, partial(_refused, unable))


def roles(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield the role of the first quote."""
    cases = data.abstracts()
    yield _line("PubMedQA, own abstract: first quote of results or conclusion", "roles", ".90", methods, partial(finds, cases))  # fmt: skip


def latency(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield milliseconds for sixteen abstracts; p50 is the median."""
    cases = data.sixteen()
    timed: dict[str, Callable[[str, Sequence[Excerpt]], object]] = {
        "cheap choice": candidates(READ),
        **{
            method.name: method.read for method in (late(data.embedder, cached=False), *methods[1:])
        },
    }
    values = {name: _milliseconds(cases, work) for name, work in timed.items()}
    yield Line(name="16 abstracts: p50, ms", only="latency", values=values, aim="≤ 300; 30 without cross-encoder")  # fmt: skip


def sides(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield conflicts that are found, false ones, and the share of passages on their right side."""
    dev = data.part == "dev"
    known = {
        "RAMDocs, by answers": reader_conflicts.answers(data.folder, dev=dev),
        "RAMDocs, right against wrong": reader_conflicts.ramdocs(data.folder, dev=dev),
        "HealthVer": reader_conflicts.healthver(data.folder, data.part),
    }
    kinds = {"found": "conflicts found", "none": "no conflict, none found", "right": "sides right"}
    for name, cases in known.items():
        results = {
            m.name: [reader_conflicts.found(c, reader_conflicts.scores_of(c, m), m) for c in cases]
            for m in methods
        }
        for what, words in kinds.items():
            values = {
                method: [
                    (case.question, value)
                    for case, one in zip(cases, found, strict=True)
                    if (value := getattr(one, what)) is not None
                ]
                for method, found in results.items()
            }
            aim = ".80" if what == "right" else ""
            yield Line(name=f"{name}: {words}", only="conflicts", values=values, aim=aim)


def verdicts(data: Data, methods: Sequence[Method]) -> Iterable[Line]:
    """Yield verdicts beside the majority class."""
    judging = [method for method in methods if method.judge is not None]
    for name, cases in (("PubMedQA", data.abstracts()), ("BioASQ", data.bioasq())):
        classes = [case.verdict for case in cases]
        most = max(sorted(set(classes)), key=classes.count)
        majority = [(case.document, float(case.verdict == most)) for case in cases]
        forced: dict[str, list[tuple[str, float]]] = {f"always {most}": majority}
        given: dict[str, list[tuple[str, float]]] = {f"always {most}": majority}
        sure: dict[str, list[tuple[str, float]]] = {}
        gain: dict[str, list[tuple[str, float]]] = {}
        for method in judging:
            rows = [_verdict(case, method) for case in cases]
            own = [(d, float(said == gold)) for d, gold, said, _ in rows]
            forced[method.name] = own
            gain[method.name] = [(d, a - b) for (d, a), (_, b) in zip(own, majority, strict=True)]
            given[method.name] = [(d, float(said == gold)) for d, gold, _, said in rows if said]
            sure[method.name] = [(d, float(bool(said))) for d, _, _, said in rows]
        yield Line(name=f"{name}: yes or no right, every question", only="verdicts", values=forced)
        yield Line(name=f"{name}: the same, more than the majority class", only="verdicts", values=gain)  # fmt: skip
        yield Line(name=f"{name}: verdict right where one is given", only="verdicts", values=given)
        yield Line(name=f"{name}: questions with a verdict", only="verdicts", values=sure)


MEASURES: dict[str, Callable[[Data, Sequence[Method]], Iterable[Line]]] = {
    "squad": squad,
    "articles": articles,
    "written": written,
    "near-misses": near_misses,
    "sample": sample,
    "roles": roles,
    "latency": latency,
    "conflicts": sides,
    "verdicts": verdicts,
}


def calibrate(data: Data, methods: Sequence[Method]) -> None:
    """Print for each method what decides whether a question is answered, and the highest threshold that keeps enough."""
    found = sets(data)
    for method in methods:
        if method.evidence is None:
            values = {
                name: tuple(_scores(cases, method) for cases in pair)
                for name, pair in found.items()
            }
        else:
            values = _fitted(found, method.evidence)
        least = []
        for name, (good, bad) in values.items():
            highest = float(np.quantile(good, 1 - KEEPS, method="lower"))
            least.append(highest)
            print(f"{method.name}, {name}: {highest:.4f} keeps {np.mean(good >= highest):.3f}, refuses {np.mean(bad < highest):.3f}")  # fmt: skip
        at = min(least)
        for name, (good, bad) in values.items():
            print(f"  {at:.4f} {name}: keeps {np.mean(good >= at):.3f}, refuses {np.mean(bad < at):.3f}")  # fmt: skip
        print(f"{method.name}: threshold {at:.4f}")


def _scores(cases: Sequence[Case], method: Method) -> NDArray[np.float64]:
    return np.array([method.read(case.question, case.excerpts).best for case in cases])


def _fitted(
    found: Mapping[str, Pair], evidence: Callable[[str, Sequence[Excerpt]], Evidence]
) -> dict[str, tuple[NDArray[np.float64], ...]]:
    """Fit slopes and offset by likelihood, each set counting the same, print them, and return the probabilities."""
    seen = {
        name: tuple(np.array([evidence(c.question, c.excerpts) for c in cases]) for cases in pair)
        for name, pair in found.items()
    }
    rows = np.concatenate([part for pair in seen.values() for part in pair])
    right = np.concatenate([np.full(len(part), 1 - k) for pair in seen.values() for k, part in enumerate(pair)])  # fmt: skip
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for pair in seen.values() for part in pair])  # fmt: skip
    line = LogisticRegression(C=1e3).fit(rows, right, sample_weight=weights * len(rows))
    print(f"slopes {Evidence(*np.round(line.coef_[0], 2).tolist())}, offset {line.intercept_[0]:.2f}")  # fmt: skip
    return {
        name: tuple(line.predict_proba(part)[:, 1] for part in pair) for name, pair in seen.items()
    }


def interval(values: Sequence[tuple[str, float]], *, middle: bool = False) -> tuple[float, float, float]:  # fmt: skip
    """Return the mean, or the median, and its 95 % interval by bootstrap over documents."""
    names = sorted({document for document, _ in values})
    place = {name: i for i, name in enumerate(names)}
    groups: list[list[float]] = [[] for _ in names]
    for document, value in values:
        groups[place[document]].append(value)
    average = np.median if middle else np.mean
    rng = np.random.default_rng(0)
    drawn = [
        float(
            average(np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))]))
        )
        for _ in range(DRAWS)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(average([value for _, value in values])), float(low), float(high)


def show(line: Line) -> None:
    """Print a row of Markdown a method."""
    for method, values in line.values.items():
        if not values:
            print(f"| {line.name} | {method} | – | 0 | | {line.aim} | `--only {line.only}` |")
            continue
        middle = line.only == "latency"
        mean, low, high = interval(values, middle=middle)
        form = ".0f" if middle else ".3f"
        documents = len({document for document, _ in values})
        print(
            f"| {line.name} | {method} | {mean:{form}} [{low:{form}}, {high:{form}}] | {len(values)} of {documents} "
            f"documents | {line.aim} | `--only {line.only}` |",
            flush=True,
        )


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="evals.reader", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", choices=sorted(MEASURES), default=list(MEASURES))
    parser.add_argument("--questions", type=int, default=100, help="questions of each set")
    parser.add_argument("--dev", action="store_true", help="print the choice of thresholds")
    parser.add_argument("--weights", type=Path, default=MODELS / FILE)
    parser.add_argument("--by", choices=("late", "cross-encoder"), help="one method alone")
    parser.add_argument("--tokens", type=int, default=READ, help="that the cross-encoder reads")
    given = parser.parse_args(argv)
    need(given.data, *FILES)
    data = Data(folder=given.data, part="dev" if given.dev else "test", most=given.questions)
    methods = [late(data.embedder)] if given.by != "cross-encoder" else []
    if given.by == "late":
        pass
    elif given.weights.exists():
        model = CrossEncoder(given.weights.read_bytes())
        methods.append(crossed(model, given.tokens, data.embedder, Judge.packaged()))
    else:
        print(f"There are no weights at {given.weights}: only `late` is measured.", file=sys.stderr)
    if given.dev:
        calibrate(data, methods)
        return
    print("| measure | method | value | questions | aim | option |\n| --- | --- | --- | --- | --- | --- |")  # fmt: skip
    for name in given.only:
        for line in MEASURES[name](data, methods):
            show(line)


def _line(
    name: str,
    only: str,
    aim: str,
    methods: Sequence[Method],
    measure: Callable[[Method], list[tuple[str, float]]],
) -> Line:
    return Line(name=name, only=only, values={m.name: measure(m) for m in methods}, aim=aim)


def _best(cases: Sequence[Case], n: int, method: Method) -> list[tuple[str, float]]:
    return best_sentence(cases, method, n)


def _read(cases: Sequence[Case], tokens: int) -> list[tuple[str, float]]:
    choose_windows = candidates(tokens)
    found = []
    for case in cases:
        read = choose_windows(case.question, case.excerpts).read
        places = {(w.excerpt, _number(case, w.excerpt, s.start)) for w in read for s in w.sentences}
        found.append((case.document, float(bool(places & case.gold))))
    return found


def _refused(cases: Sequence[Case], method: Method) -> list[tuple[str, float]]:
    return [(document, 1 - value) for document, value in answered(cases, method)]


def _number(case: Case, number: int, start: int) -> int:
    starts = [one.start for one in case.excerpts[number].sentences]
    return starts.index(start)


def _milliseconds(
    cases: Sequence[Case], work: Callable[[str, Sequence[Excerpt]], object]
) -> list[tuple[str, float]]:
    work(cases[0].question, cases[0].excerpts)
    found = []
    for case in cases[1:]:
        started = time.perf_counter()
        work(case.question, case.excerpts)
        found.append((case.document, (time.perf_counter() - started) * 1e3))
    return found


def _verdict(case: Case, method: Method) -> tuple[str, str, str, str]:
    """Return document, gold verdict, the likelier of yes and no, and the verdict that is given or nothing."""
    assert method.judge is not None
    scores = method.read(case.question, case.excerpts)
    texts = [
        one.sentence.of(case.excerpts[one.excerpt].passage.text)
        for one in choose(scores, judged=True)
    ]
    leaning = lean(case.question, texts, method.judge)
    said = "" if leaning is None else "yes" if leaning.yes >= leaning.no else "no"
    given = verdict(case.question, texts, method.judge)
    return case.document, case.verdict, said, "" if given is None else given.choice


if __name__ == "__main__":
    main()
