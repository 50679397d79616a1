from __future__ import annotations

import json
from typing import Any

import pytest

from evals.peers.stub import ENOUGH, PATHWAY_REFUSAL, REFUSAL, hesitates


def asked(prompt: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt}]}


def of_pathway(documents: int) -> str:
    """A prompt of Pathway's, whose example has a source at the beginning of a line."""
    shown = "\n\n".join(json.dumps({"text": f"Finding {n} holds."}) for n in range(documents))
    return f"Example: \nSource 2: Water is wet.\n------\n{shown}\n------\nQuery: Is it?\nAnswer: "


def re_enacted(documents: int) -> str:
    shown = "\n".join(f"Source {n}: Finding {n} holds." for n in range(1, documents + 1))
    return f"Answer.\n------\n{shown}\n------\nQuery: Is it?\nAnswer:"


@pytest.mark.parametrize(
    ("prompt", "refusal"), [(of_pathway, PATHWAY_REFUSAL), (re_enacted, REFUSAL)]
)
def test_few_documents_are_refused_in_the_words_of_each_side(prompt: Any, refusal: str) -> None:
    assert hesitates(asked(prompt(ENOUGH - 1))) == refusal
    assert "Finding" in hesitates(asked(prompt(ENOUGH)))
