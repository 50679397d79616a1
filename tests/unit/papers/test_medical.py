"""BioASQ's questions and passages as the suites read them, and the pure parts of the suites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evals.papers.bioasq import Question, read, shared, short
from evals.papers.provence.mixed import Mixture
from evals.papers.provence.ranking import ranked
from evals.papers.tcra.rate import Rate, predicted
from evals.papers.tcra.words import correlation, information
from posology.types import Sentence
from tests.unit.papers import medical
from tests.unit.papers.tiny import run_in


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return medical.write(tmp_path_factory.mktemp("bioasq"))


def test_an_articles_snippets_are_one_passage_in_their_order(data: Path) -> None:
    corpus = read(data, data)
    asked = corpus.questions[0]
    (first, spans), (_, other) = asked.gold.items()
    text = corpus.texts[first]
    assert text.startswith("A trial of aspirin in disease of the liver. The dose of aspirin")
    assert text.endswith("Nurses kept the records.")
    assert spans[0].of(text) == "The dose of aspirin that was given is 5 mg."
    assert len(other) == 1
    assert (asked.answers, asked.kind) == (("5 mg",), "factoid")
    assert asked.ideal == ("The dose of aspirin is 5 mg in disease of the liver.",)


def test_what_the_pruner_may_have_read_is_not_asked(data: Path) -> None:
    corpus = read(data, data)
    asked = {one.id for one in corpus.questions}
    in_the_pool, word_for_word = medical.ids("train", 2)
    assert in_the_pool not in asked
    assert word_for_word not in asked
    assert "pmid:1900" not in corpus.texts
    assert len(asked) == 12


def test_shared_words_must_stand_in_a_row() -> None:
    said = [{"id": "a", "snippets": [{"text": medical.SEEN}]}]
    words = medical.SEEN.split()
    assert shared(said, ["Elsewhere.", f"so: {medical.SEEN.upper()}"]) == {"a"}
    assert shared(said, [" ".join(words[:11])]) == set()
    assert shared(said, [" ".join([*words[:6], "and", *words[6:]])]) == set()


def test_questions_aside_share_no_article_with_those_that_were_learned_from(data: Path) -> None:
    corpus = read(data, data)
    assert {one.id for one in corpus.part("test")} == set(medical.ids("test", 6))
    assert len(corpus.aside.questions) == 12
    named = {name for one in corpus.aside.questions for name in one.gold}
    assert {one.id for one in corpus.aside.passages} == named
    assert {one.id for one in short(corpus)} == set(medical.ids("test", 6))


def test_a_sentence_is_gold_if_a_snippet_covers_half_of_it() -> None:
    asked = Question(
        id="a", text="?", kind="factoid", gold={"p": (Sentence(start=10, end=20),)}, answers=(), ideal=()
    )  # fmt: skip
    assert asked.bears("p", Sentence(start=10, end=30))
    assert not asked.bears("p", Sentence(start=10, end=31))
    assert not asked.bears("q", Sentence(start=10, end=20))


def test_a_mixture_puts_the_gold_sentence_at_its_place() -> None:
    asked = Question(id="a", text="?", kind="factoid", gold={}, answers=(), ideal=())
    mixture = Mixture(question=asked, gold="Gold.", others=("A.", "B.", "C."), beside=("D. E.",))
    assert mixture.texts(3, 0.0) == ["Gold. A. B.", "D. E."]
    assert mixture.texts(3, 1.0) == ["A. B. Gold.", "D. E."]
    assert mixture.texts(2, 1.0) == ["A. Gold.", "D. E."]


def test_ranks_are_those_of_the_first_gold_passages() -> None:
    found = ranked(["a", "b", "c"], {"b"})
    assert found["MRR@10"] == 0.5
    assert found["R@5"] == 1
    assert found["nDCG@10"] == pytest.approx(1 / np.log2(3))
    assert ranked(["a"], {"b"}) == {"MRR@10": 0.0, "R@5": 0.0, "nDCG@10": 0.0}


def test_information_is_that_of_frequencies() -> None:
    assert information(["a a b", "c"]) == {"a": 1.0, "b": 2.0, "c": 2.0}


def test_rates_are_predicted_on_other_folds() -> None:
    features = np.arange(40.0)[:, None]
    assert predicted(features, 3 * features[:, 0] + 1) == pytest.approx(3 * features[:, 0] + 1)


def test_correlation_needs_two_that_change() -> None:
    assert correlation([1, 2, 3], [2, 4, 6]) == "+1.00"
    assert correlation([1, 1, 1], [2, 4, 6]) == "–"


def test_rates_of_summaries_have_a_regression(tmp_path: Path) -> None:
    found = [
        {
            "pmid": str(n),
            "contexts": ["word " * (20 + n), "other"],
            "long_answer": "said " * (5 + n % 3),
        }
        for n in range(20)
    ]
    medical.zipped(tmp_path / "pubmedqa_train.jsonl.gz", found)
    text = run_in(tmp_path, Rate(), questions=20)
    assert "| authors' conclusions | 20 |" in text
    assert "| the paper, mT5 at 30 % | 0.31 | 0.114 | 0.096 |" in text
    assert "| here, authors' conclusions |" in text
