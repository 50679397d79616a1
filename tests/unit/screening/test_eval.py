"""Tests of ``evals.screening``: its forms of labels, and work saved by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evals.screening import Pool, make_topic, read_labels, saved, score
from posology.types import Passage


class Letters:
    """Embeds a text as the counts of two words."""

    def embed_queries(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count("gout"), text.count("rust")] for text in texts], np.float32)


def test_work_saved_by_hand() -> None:
    # 19 of 20 relevant records are 95 %; the last of them is the 40th of 200
    labels = np.zeros(200, dtype=bool)
    labels[[*range(18), 39, 199]] = True
    assert saved(labels) == pytest.approx(1 - 40 / 200 - 0.05)


def test_labels_of_cohen_are_decisions_on_articles(tmp_path: Path) -> None:
    path = tmp_path / "epc-ir.clean.tsv"
    path.write_text(
        "ADHD\t1\t10\tI\tE\nADHD\t2\t11\tI\tI\nStatins\t3\t12\tE\tE\n", encoding="utf-8"
    )
    labels = read_labels(path)
    assert list(labels) == ["ADHD", "Statins"]
    assert [one["label_included"] for one in labels["ADHD"]] == ["0", "1"]
    pool = Pool(
        passages=(Passage(id="x", text="Zinc."),),
        vectors=np.ones((1, 2), np.float32),
        row={"pmid:11": 0},
    )
    topic = make_topic("ADHD", labels["ADHD"], pool, Letters())
    assert (topic.passages[0].id, topic.missing) == ("x", (1, 0))
    assert topic.relevant.tolist() == [True]


def test_synergy_with_its_own_texts_is_read_to_the_end(tmp_path: Path) -> None:
    texts = [f"{n},T{n},{'gout' if n < 10 else 'rust'} {n},{int(n < 10)}\n" for n in range(60)]
    (tmp_path / "Gout_2020.csv").write_text(
        "openalex_id,title,abstract,label_included\n" + "".join(texts), encoding="utf-8"
    )
    (given,) = read_labels(tmp_path).values()
    topic = make_topic("Gout_2020", given, None, Letters())
    result = score(topic, np.array([1, 0], np.float32), "gout")
    assert result.saved == pytest.approx(1 - 10 / 60 - 0.05)
    assert result.recall == 1.0
    assert 0 < result.read <= 1
