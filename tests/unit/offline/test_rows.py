"""Which row of a table the reader without a model quotes."""

from __future__ import annotations

import pytest

from posology.llm.offline.rows import ranked
from posology.llm.offline.scores import Scored
from posology.text.sentences import split
from posology.types import Excerpt, Passage

TABLE = """Table 2, row Strain / IN64: n: 63; MLT (min): 48.4; SD (min): 4.60.
Table 2, row Strain / IN67: n: 212; MLT (min): 57.6; SD (min): 6.71.
Table 3, row Age at menarche / 13: Cases: 457; HR (95 % CI): 0.97 (0.84–1.14).
Table 3, row Age at menarche / 14: Cases: 424; HR (95 % CI): 0.98 (0.83–1.13).
Table 4, row Sheep: Level: Female; Seroprevalence (%): 23.8.
Table 4, row Goats: Level: Female; Seroprevalence (%): 15.7."""
PROSE = "Strain IN67 had the longest mean lysis time. The hazard ratio did not change with age at menarche."


def quoted(question: str, *scores: float) -> list[str]:
    """The sentences of a table and of prose, best first; given their scores by a reader of prose."""
    texts = (TABLE, PROSE)
    excerpts = [
        Excerpt(
            passage=Passage(id=f"pmc:{i}", text=text, parent="pmc"), sentences=tuple(split(text))
        )
        for i, text in enumerate(texts)
    ]
    sentences = [(i, one) for i, excerpt in enumerate(excerpts) for one in excerpt.sentences]
    scored = [
        Scored(excerpt=i, sentence=one, score=score)
        for (i, one), score in zip(sentences, scores, strict=True)
    ]
    order = ranked(question, excerpts, scored)
    return [one.sentence.of(texts[one.excerpt]) for one in order]


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("What was the MLT of strain IN64?", "IN64"),
        ("What was the MLT of strain IN67?", "IN67"),
        # 14 stands in an interval of the row of 13
        ("What was the HR with age at menarche of 14?", "menarche / 14"),
        ("What was the HR with age at menarche of 13?", "menarche / 13"),
        ("What was the seroprevalence in female goats?", "Goats"),
        ("What was the seroprevalence in female sheep?", "Sheep"),
    ],
)
def test_the_row_with_the_words_of_the_question_comes_first(question: str, row: str) -> None:
    first, *_ = quoted(question, 0.3, 0.5, 0.4, 0.3, 0.5, 0.4, 0.6, 0.7)
    assert f"{row}:" in first


def test_prose_stays_first_where_no_value_is_asked_for() -> None:
    asked = "Does the HR of cases change with age at menarche?"
    first, *_ = quoted(asked, 0.3, 0.5, 0.4, 0.3, 0.2, 0.1, 0.6, 0.7)
    assert first.startswith("The hazard ratio did not change")


def test_prose_with_more_of_the_question_stays_first() -> None:
    first, *_ = quoted("Which strain had the longest mean lysis time?", *[0.3] * 6, 0.7, 0.6)
    assert first.startswith("Strain IN67 had")


def test_rows_of_one_table_keep_its_scores() -> None:
    """So the table comes no earlier, or later, than the reader said."""
    order = quoted("Is strain IN64 faster?", 0.3, 0.5, 0.2, 0.1, 0.2, 0.1, 0.6, 0.7)
    assert [one[:24] for one in order[2:4]] == [
        "Table 2, row Strain / IN",
        "Table 2, row Strain / IN",
    ]
    assert "IN64" in order[2]
