"""Suites: the files that they are read from, and what is wrong with one."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.evaluation.literature import _merged
from orchestrator.evaluation.plan import plan, ways_of
from orchestrator.evaluation.suites import read_suites
from orchestrator.evaluation.suites.base import Case, Gold
from orchestrator.settings import Settings
from posology.errors import BadFile, InputError

PUBMEDQA = {"10808977": {"QUESTION": "Does it help?", "final_decision": "maybe", "CONTEXTS": []}}
BIOASQ = {
    "questions": [
        {
            "id": "61f8",
            "type": "yesno",
            "body": "Is it so?",
            "exact_answer": "Yes",
            "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/34022131", "http://example.org/x"],
        },
        {"id": "62", "type": "factoid", "body": "Which?", "exact_answer": ["a"]},
    ]
}
MIRAGE = {
    "medqa": {"0000": {"question": "Which?", "options": {"A": "this", "B": "that"}, "answer": "B"}},
    "bioasq": {
        "61f8": {
            "question": "Is it so?",
            "options": {"A": "yes", "B": "no"},
            "answer": "A",
            "PMID": [34022131],
        }
    },
}
SCIFACT = [
    {"id": 1, "claim": "It helps.", "evidence": {}},
    {"id": 2, "claim": "It harms.", "evidence": {"7": [{"label": "CONTRADICT", "sentences": [1]}]}},
    {"id": 3, "claim": "So so.", "evidence": {"7": {"label": "SUPPORT"}, "8": {"label": "CONTRADICT"}}},
]  # fmt: skip
SQUAD = {
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {"context": "…", "qas": []},
                {
                    "context": "…",
                    "qas": [
                        {"id": "a", "question": "When?", "answers": [{"text": "1973"}, {"text": "1973"}]},
                        {"id": "b", "question": "Who?", "answers": [], "is_impossible": True},
                    ],
                },
            ],
        }
    ]
}  # fmt: skip


def written(path: Path, content: Any) -> Path:
    rows = content if isinstance(content, list) else [content]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def read(kind: str, path: Path) -> tuple[Case, ...]:
    (suite,) = read_suites([f"{kind}:{path}"])
    assert suite.name == f"{kind}:{path.name.partition('.')[0]}"
    return suite.cases


def test_every_published_format_is_read_with_its_known_answers(tmp_path: Path) -> None:
    (one,) = read("pubmedqa", written(tmp_path / "ori_pqal.json", PUBMEDQA))
    assert (one.id, one.gold) == ("10808977", Gold(verdict="maybe", passages=("pmid:10808977",)))
    (two,) = read("bioasq", written(tmp_path / "task.json", BIOASQ))
    assert two.gold == Gold(verdict="yes", passages=("pmid:34022131",))
    choice, yes_no = read("mirage", written(tmp_path / "benchmark.json", MIRAGE))
    assert (choice.id, choice.gold.verdict) == ("medqa/0000", "B")
    assert choice.fields["options"] == {"A": "this", "B": "that"}
    assert (yes_no.fields["form"], yes_no.gold.verdict) == ("yes_no", "yes")
    assert yes_no.gold.passages == ("pmid:34022131",)
    silent, against = read("scifact", written(tmp_path / "claims.jsonl", SCIFACT))
    assert silent.gold == Gold(answerable=False)
    assert against.gold == Gold(verdict="no", passages=("scifact:7",))
    dated, nobody = read("squad", written(tmp_path / "dev.json", SQUAD))
    assert dated.gold == Gold(answers=("1973",), passages=("squad:1",))
    assert nobody.gold == Gold(answerable=False)


def test_records_of_another_kind_are_counted(tmp_path: Path) -> None:
    suites = read_suites(
        [
            f"bioasq:{written(tmp_path / 'task.json', BIOASQ)}",
            f"scifact:{written(tmp_path / 'claims.jsonl', SCIFACT)}",
        ]
    )
    assert [dict(suite.skipped) for suite in suites] == [
        {"no yes/no question": 1},
        {"evidence for and against": 1},
    ]


def test_rows_may_be_packed_and_one_alone(tmp_path: Path) -> None:
    row = {"pmid": "1", "question": "Does it help?", "answer": "yes"}
    path = tmp_path / "train.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(row).encode()))
    (case,) = read("pubmedqa", path)
    assert (case.id, case.line) == ("1", 1)


def test_own_questions_take_every_option_of_a_batch(tmp_path: Path) -> None:
    rows = [
        {"question": "Which dose?", "k": 16, "gold": {"answers": ["81 mg"]}},
        {"id": 7, "question": "Is it?", "form": "yes_no", "gold": {"verdict": "YES"}},
    ]
    (suite,) = read_suites([str(written(tmp_path / "mine.jsonl", rows))])
    assert suite.name == "mine"
    assert [case.id for case in suite.cases] == ["line 1", "7"]
    assert suite.cases[1].gold.verdict == "yes"
    found = plan(
        [suite], ways_of(["direct", "router"], ["offline:extractive"]), {"k": 4}, Settings()
    )
    assert [item.request.k for item in found.items] == [16, 16, 4, 4]
    assert len({item.key for item in found.items}) == 4
    assert [item.request.strategy for item in found.items[:2]] == ["direct", None]


def test_another_configuration_asks_the_questions_anew(tmp_path: Path) -> None:
    suites = read_suites(
        [
            str(
                written(
                    tmp_path / "mine.jsonl", [{"question": "Why?", "gold": {"answerable": False}}]
                )
            )
        ]
    )
    table = tmp_path / "table.json"
    table.write_text("{}")
    ways = ways_of(["direct"], ["offline:extractive"])

    def key(**configured: str) -> str:
        (item,) = plan(suites, ways, {}, Settings.model_validate(configured)).items
        return item.key

    keys = [
        key(),
        key(POSOLOGY_RERANKER="late"),
        key(POSOLOGY_COMPRESSOR="lexical"),
        key(POSOLOGY_QTABLE=str(table)),
    ]
    table.write_text("{ }")
    keys.append(key(POSOLOGY_QTABLE=str(table)))
    assert len({*keys}) == len(keys)
    assert key() == keys[0]


def test_passages_of_two_files_are_told_apart(tmp_path: Path) -> None:
    """Paragraphs have numbers of their file; an abstract has snippets in several."""

    def squad(name: str, text: str) -> str:
        qas = [{"id": "1", "question": "Why?", "answers": [{"text": text.split(maxsplit=1)[0]}]}]
        article = {"title": "Salt", "paragraphs": [{"context": text, "qas": qas}]}
        return f"squad:{written(tmp_path / name, {'data': [article]})}"

    suites = read_suites([squad("a.json", "Aspirin helps."), squad("b.json", "Ibuprofen helps.")])
    assert [one.passages[0].title for one in suites] == ["Salt", "Salt"]
    with pytest.raises(InputError, match="a folder of its own"):
        _merged(suites)
    assert _merged(suites[:1])["squad:0"]["text"] == "Aspirin helps."
    shared = [
        replace(suite, passages=tuple(replace(one, id="pmid:7") for one in suite.passages))
        for suite in suites
    ]
    assert _merged(shared)["pmid:7"]["text"] == "Aspirin helps.\nIbuprofen helps."


def test_a_larger_limit_keeps_the_questions_of_a_smaller_one(tmp_path: Path) -> None:
    rows = [{"question": f"Why {n}?", "gold": {"answerable": False}} for n in range(40)]
    suites = read_suites([str(written(tmp_path / "mine.jsonl", rows))])
    ways = ways_of(["direct"], ["offline:extractive"])
    drawn = [
        {item.key for item in plan(suites, ways, {}, Settings(), limit=n).items}
        for n in (5, 10, 99)
    ]
    assert [len(keys) for keys in drawn] == [5, 10, 40]
    assert drawn[0] < drawn[1] < drawn[2]


@pytest.mark.parametrize(
    ("kind", "lines", "line", "reason"),
    [
        ("questions", ['{"question": "A?", "gold": {"answers": ["b"]}}', "{no"], 2, "not JSON"),
        ("questions", ['{"question": "A?"}'], 1, "'gold' is missing"),
        ("questions", ["[1]"], 1, "must be a JSON object"),
        ("questions", ['{"question": "A?", "model": "x:y", "gold": {}}'], 1, "'model' is set for all"),
        ("questions", ['{"question": "A?", "gold": {}}'], 1, "needs verdict, answers or passages"),
        ("questions", ['{"question": "A?", "gold": {"verdict": "yes"}}'], 1, "needs the form"),
        ("questions", ['{"question": "A?", "gold": {"right": 1}}'], 1, "unknown field 'right'"),
        ("questions", ['{"question": "A?", "gold": {"answers": "b"}}'], 1, "list of texts"),
        ("pubmedqa", ["{", '"1": {"QUESTION": "A?",,'], 2, "not JSON"),
        ("pubmedqa", ['{"1": {"QUESTION": "A?", "final_decision": "so"}}'], None, "1: the field 'final_decision'"),
        ("bioasq", ['{"questions": [{"type": "yesno", "id": "1"}]}'], None, "question 1: the field 'body'"),
        ("mirage", ['{"medqa": {"0": {"question": "A?", "options": {"A": "b"}, "answer": "C"}}}'], None, "medqa/0"),
        ("scifact", ['{"id": 1, "claim": "A.", "evidence": {"2": {"label": "SO"}}}'], 1, "SUPPORT or CONTRADICT"),
        ("squad", ['{"context": "a", "qas": [{"id": "1", "question": "A?", "answers": []}, 3]}'], 1, "question 2"),
        ("squad", ['{"other": []}'], None, "no question of the format squad"),
    ],
)  # fmt: skip
def test_a_bad_file_is_reported_with_its_line_and_reason(
    kind: str, lines: list[str], line: int | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BadFile) as raised:
        read_suites([f"{kind}:{path}"])
    assert reason in raised.value.reason
    assert raised.value.line == line


def test_a_question_that_cannot_be_asked_stops_before_anything_is_spent(tmp_path: Path) -> None:
    rows = [{"question": "A?", "k": 0, "gold": {"answers": ["b"]}}]
    suites = read_suites([str(written(tmp_path / "mine.jsonl", rows))])
    with pytest.raises(BadFile, match="question line 1: k:") as raised:
        plan(suites, ways_of(["direct"], ["offline:extractive"]), {}, Settings())
    assert raised.value.line == 1


def test_names_and_ids_are_unique(tmp_path: Path) -> None:
    row = {"id": "a", "question": "A?", "gold": {"answers": ["b"]}}
    one = written(tmp_path / "mine.jsonl", [row])
    with pytest.raises(InputError, match="two suites are named mine"):
        read_suites([str(one), str(one)])
    with pytest.raises(BadFile, match="two questions have the id 'a'"):
        read_suites([str(written(tmp_path / "twice.jsonl", [row, row]))])
    with pytest.raises(BadFile, match="No such file"):
        read_suites([str(tmp_path / "nowhere.jsonl")])


@pytest.mark.data
def test_the_shared_sets_are_read_whole(shared_data: Path) -> None:
    suites = read_suites(
        [
            f"pubmedqa:{shared_data / 'pubmedqa_train.jsonl.gz'}",
            f"bioasq:{shared_data / 'bioasq_7b-10b.jsonl.gz'}",
            f"scifact:{shared_data / 'scifact_claims_train.jsonl.gz'}",
            f"squad:{shared_data / 'covidqa.jsonl.gz'}",
        ]
    )
    assert [len(suite.cases) for suite in suites] == [500, 532, 809, 1_380]
