"""Training of the head for roles: labels from headings, files of vectors, and the network itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from posology.text.roles.head import ROLES, RoleHead, dump, tell
from posology.text.sentences import split
from posology.types import SentenceRole as R
from training.pruner_cases import POOL
from training.roles.cases import PUBMEDQA, abstracts, by_words, pubmedqa
from training.roles.training import Example, fit

BOTH = frozenset({R.BACKGROUND, R.AIM})
KNOWN, ASKED = "Asthma is common.", "We aimed to test salbutamol."


@pytest.mark.parametrize(
    ("named", "sentences", "roles"),
    [
        ({R.BACKGROUND}, [KNOWN, ASKED], [R.BACKGROUND, R.AIM]),
        ({R.AIM}, [KNOWN, ASKED, "It may help."], [R.BACKGROUND, R.AIM, R.AIM]),
        ({R.AIM}, ["To test salbutamol."], [R.AIM]),
        ({R.AIM}, [KNOWN], [R.AIM]),
        (BOTH, [KNOWN], [None]),
        (BOTH, [KNOWN, ASKED], [R.BACKGROUND, R.AIM]),
        ({R.METHODS}, [ASKED], [R.METHODS]),
        ({R.METHODS, R.RESULTS}, [KNOWN], [None]),
        (set(), [KNOWN], [None]),
    ],
)
def test_labels_come_from_headings_and_in_openings_from_words(
    named: set[R], sentences: list[str], roles: list[R | None]
) -> None:
    assert by_words(sentences, frozenset(named)) == roles


def test_headings_are_removed_also_glued_and_halved_ones(tmp_path: Path) -> None:
    pool = {
        "id": "pmid:1",
        "title": "Salbutamol",
        "text": f"BACKGROUND: {KNOWN} OBJECTIVE: {ASKED}METHODS: Children got it. RESULTS: It rose. FUNDING: None.",
    }
    asked = {
        "pmid": "2",
        "question": "Does it help?",
        "contexts": [f"{KNOWN}MATERIAL/", "Children got it."],
        "labels": ["BACKGROUND", "METHODS"],
        "long_answer": "It helps.",
    }
    for name, row in ((POOL, pool), (PUBMEDQA, asked)):
        with gzip.open(tmp_path / name, "wt") as file:
            file.write(json.dumps(row) + "\n")
    (first,), (second,) = abstracts(tmp_path), pubmedqa(tmp_path)
    assert first.passage.text == f"{KNOWN} {ASKED} Children got it. It rose. None."
    assert first.roles == (R.BACKGROUND, R.AIM, R.METHODS, R.RESULTS, None)
    assert second.passage.text == f"{KNOWN} Children got it. It helps."
    assert second.roles == (R.BACKGROUND, R.METHODS, R.CONCLUSION)


@pytest.mark.slow
def test_what_was_learned_is_what_is_read_and_the_same_each_time(tmp_path: Path) -> None:
    """The words say nothing here, and the vectors all: numpy must compute what torch learned."""
    rng = np.random.default_rng(5)
    centres = rng.integers(-100, 100, (len(ROLES), 16))
    known = []
    for _ in range(192):
        n = int(rng.integers(3, 9))
        roles = np.sort(rng.integers(0, len(ROLES), n))
        text = " ".join(["It was so."] * n)
        noise = rng.integers(-20, 20, (n, 16))
        vectors = (centres[roles] + noise).astype(np.int8)
        known.append(Example(vectors=vectors, told=tell(text, split(text)), roles=roles))
    made = [dump("e", fit(known, epochs=5)) for _ in range(2)]
    assert made[0] == made[1]
    file = tmp_path / "head.npz"
    file.write_bytes(made[0])
    head = RoleHead.read(file)
    said = [head.probabilities(one.told, one.vectors).argmax(axis=1) for one in known]
    right = np.concatenate(said) == np.concatenate([one.roles for one in known])
    assert right.mean() > 0.97
