"""Sets of questions with and without what answers them, on which the offline reader's refusal is fitted.

Each set has two lists of cases: the texts that answer are among those shown, or the nearest texts that do not answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evals.reader.cases import SHOWN, Case, Data, excerpt
from training.gold import rows
from training.pruner_articles import COVID
from training.pruner_cases import part_of

#: cases that are answerable, and their near misses
Pair = tuple[list[Case], list[Case]]


def sets(data: Data) -> Mapping[str, Pair]:
    """Return the sets by name."""
    return {
        "SQuAD": (data.squad(), data.squad(near=True)),
        "PubMedQA": (data.pubmedqa(), data.pubmedqa(near=True)),
        "BioASQ": bioasq(data),
        "Evidence Inference": articles(data),
        "CovidQA": covid(data),
        "written": (data.written(), data.written(near=True)),
    }


def bioasq(data: Data) -> Pair:
    """Return questions with gold snippets before those of the nearest questions, or with these alone."""
    found = data.bioasq_rows
    vectors = data.embedder.embed_queries([row["body"] for row in found])
    able: list[Case] = []
    unable: list[Case] = []
    for i in data.few(range(len(found))):
        own = _texts([found[i]], 3)
        others = [
            text
            for text in _texts([found[j] for j in _nearest(vectors, i, 4)], 2)
            if all(text != one["text"].strip() for one in found[i]["snippets"])
        ]
        for into, texts in ((able, [*own, *others]), (unable, others)):
            shown = tuple(excerpt(text, "", str(k)) for k, text in enumerate(texts[:SHOWN]))
            case = Case(document=found[i]["id"], question=found[i]["body"], excerpts=shown)
            into.append(case)
    return able, unable


def articles(data: Data) -> Pair:
    """Return prompts over their own article, or over the article with the likest title."""
    able = data.articles()
    titles = [case.excerpts[0].passage.title for case in able]
    vectors = data.embedder.embed_queries([title or "?" for title in titles])
    unable = []
    for i, case in enumerate(able):
        near = _nearest(vectors, i, len(able))
        j = next(j for j in near if able[j].document != case.document)
        unable.append(_moved(case, able[j]))
    return able, unable


def covid(data: Data) -> Pair:
    """Return questions over their own article, or over the likest."""
    found = [row for row in rows(data.folder / COVID) if part_of(str(row["document_id"])) == data.part]  # fmt: skip
    vectors = data.embedder.embed_queries([row["context"][:300] for row in found])
    asked = [
        (i, qa["question"])
        for i, row in enumerate(found)
        for qa in row["qas"]
        if qa["answers"] and not qa.get("is_impossible")
    ]
    able: list[Case] = []
    unable: list[Case] = []
    for i, question in data.few(asked):
        for into, k in ((able, i), (unable, _nearest(vectors, i, 1)[0])):
            text = found[k]["context"]
            shown = (excerpt(text, text.split("\n", 1)[0][:200], str(k)),)
            into.append(Case(document=str(i), question=question, excerpts=shown))
    return able, unable


def _moved(case: Case, other: Case) -> Case:
    return Case(document=case.document, question=case.question, excerpts=other.excerpts)


def _texts(found: Sequence[dict[str, Any]], most: int) -> list[str]:
    return list(dict.fromkeys(s["text"].strip() for row in found for s in row["snippets"][:most]))


def _nearest(vectors: np.ndarray[Any, Any], i: int, n: int) -> list[int]:
    order = np.argsort(-(vectors @ vectors[i]), kind="stable").tolist()
    return [j for j in order if j != i][:n]
