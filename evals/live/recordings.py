"""Rows of :mod:`evals.live` as recordings, which tests replay."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from evals.live.rows import PEER, PLAIN, all_rows, key_of
from posology.types import Passage


async def record(data: Path, file: Path, label: str) -> None:
    """Add the rows of one model to the recordings for the tests, with what becomes of each now.

    Those of the same question go, unless statements of theirs are labelled.

    Args:
        data: folder of the data sets.
        file: rows beside those that are kept.
        label: name of the run in the rows.
    """
    from evals.live.statements import known as statements
    from tests.support import recorded

    known = recorded.library(data)
    path = recorded.RECORDED / f"{label.rpartition(':')[2]}.jsonl"
    made = {key_of(row): row for row in recorded.rows() if row["model"] == label}
    labelled = {key_of(row) for row in statements()} & made.keys()
    for row in all_rows(file):
        if (
            row["model"] != label
            or row["way"] in (PLAIN, PEER)
            or row["outcome"] == "failed"
            or key_of(row) in labelled
            or any("reply" not in one for one in row["calls"])
        ):
            continue
        passages = [known.documents[one] for one in row["retrieved"]]
        found = {
            "model": label,
            "way": row["way"],
            "set": row["set"],
            "id": row["id"],
            "passages": row["retrieved"],
            "data": recorded.digest(
                [Passage(id=p.id, title=p.title, text=p.text) for p in passages]
            ),
            "doses": row.get("doses", []),
            "quotes": row.get("quotes", "sentences"),
            "support": row.get("support_mode", "off"),
            "partition_size": row.get("partition_size"),
            "calls": [
                {
                    "stage": one["stage"],
                    "prompt": one["prompt"],
                    "shown": [excerpt["id"] for excerpt in one["excerpts"]],
                    "reply": one["reply"],
                    "finish": one["finish"],
                    "tokens_in": one["tokens_in"],
                    "tokens_out": one["tokens_out"],
                }
                for one in row["calls"]
            ],
        }
        # what is read as a refusal by now may have been an answer then, and the next call was not made
        with suppress(recorded.NotRecorded):
            found["outcome"] = await recorded.outcome(found, known)
            made[key_of(row)] = found
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in made.values())
    path.write_text(lines, encoding="utf-8")
    print(f"{len(made)} questions in {path}")
