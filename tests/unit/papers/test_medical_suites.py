"""Each suite over BioASQ from its items to its report, on a few questions over a real index."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.papers.bioasq import Bench, Question, open_bench
from evals.papers.leancontext.tables import Cascades, Numbers, States
from evals.papers.provence.mixed import Length, Place
from evals.papers.provence.needles import Needles
from evals.papers.provence.number import Number
from evals.papers.provence.pruning import Pruning, TopOfEach, compressors
from evals.papers.provence.ranking import Ranking
from evals.papers.suite import Given, Suite
from evals.papers.tcra.answers import Passages
from evals.papers.tcra.stages import Stages
from evals.papers.tcra.words import Removal, drawn
from posology.types import Retrieval
from tests.unit.papers import medical
from tests.unit.papers.tiny import run_in

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return medical.write(tmp_path_factory.mktemp("bioasq"))


@pytest.fixture(scope="module")
def bench(data: Path) -> Bench:
    return open_bench(data, data)


@pytest.fixture
def retrieved(bench: Bench) -> tuple[Question, Retrieval]:
    asked = bench.corpus.questions[0]
    return asked, bench.retrieve([asked], 3)[asked.id]


def test_top_of_each_leaves_so_many_sentences_of_every_passage(
    retrieved: tuple[Question, Retrieval],
) -> None:
    _, retrieval = retrieved
    compressed = TopOfEach(1)(retrieval, None)
    assert [len(one.sentences) for one in compressed.excerpts] == [1] * len(retrieval.passages)


def test_pruning_has_a_row_for_each_compressor(data: Path, tmp_path: Path) -> None:
    text = _run(Pruning(), data, tmp_path, 3)
    assert "| whole | 3 | 0.000 [0.000, 0.000] | 1.000 [1.000, 1.000] | 1.000" in text
    for name in compressors():
        assert f"| {name} | 3 |" in text
    assert "| pruner | compression | 0.490 |" in text


@pytest.mark.parametrize("suite", [Number(), Ranking(), Stages()], ids=lambda suite: suite.name)
def test_suites_without_a_reader(suite: Suite, data: Path, tmp_path: Path) -> None:
    text = _run(suite, data, tmp_path, 4)
    assert "No reader is asked." in text
    assert "Incomplete" not in text


def test_the_numbers_of_sentences_are_a_table_of_shares(data: Path, tmp_path: Path) -> None:
    text = _run(Number(), data, tmp_path, 4)
    (row,) = [line for line in text.splitlines() if line.startswith("| 0 | ")]
    shares = [float(cell) for cell in row.strip("| ").split(" | ")[2:]]
    assert sum(shares) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("suite", [Place(), Length()], ids=lambda suite: suite.name)
def test_suites_of_mixed_passages(
    suite: Place | Length, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a dozen short articles have not as many sentences to fill with
    monkeypatch.setattr(suite, "fewest", 2)
    items = suite.items(Given(data=data, work=data, questions=1))
    assert len(items) == len(suite.places) * len(suite.lengths)
    found = suite.measured(items[0])
    assert found["gold"] in (0.0, 1.0)
    assert 0 <= (found["compression"] or 0) <= 1


def test_needles_need_long_passages(data: Path) -> None:
    assert Needles().items(Given(data=data, work=data, questions=5)) == []


@pytest.mark.parametrize(
    ("suite", "reader", "shown"),
    [
        (Passages(), "immune", ("| immune | k = 10 | 2 |", "**Simulation.**")),
        (
            Removal(),
            "offline",
            (
                "| offline:extractive | whole | 2 |",
                "| offline:extractive | semantic, 40% | 2 |",
                "| offline:extractive | random deletion |",
            ),
        ),
        *((suite, "offline", ("| ROUGE-1 |",)) for suite in (Numbers(), Cascades(), States())),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_suites_with_a_reader(
    suite: Suite, reader: str, shown: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    text = _run(suite, data, tmp_path, 2, reader)
    assert "Incomplete" not in text
    for one in shown:
        assert one in text


def test_random_deletion_leaves_a_share_of_the_words(retrieved: tuple[Question, Retrieval]) -> None:
    one = retrieved[1].passages[0]
    left = " ".join(drawn(one, 0.5)).split()
    words = one.passage.text.split()
    assert len(left) == pytest.approx(len(words) / 2, abs=1.5)
    assert left == " ".join(drawn(one, 0.5)).split()
    assert set(left) <= set(words)


def _run(suite: Suite, data: Path, folder: Path, questions: int, *readers: str) -> str:
    for path in data.iterdir():
        (folder / path.name).symlink_to(path)
    return run_in(folder, suite, *readers, questions=questions)
