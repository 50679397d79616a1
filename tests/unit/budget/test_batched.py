"""Accounts of the rows of a provider's batch."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from posology.budget.ledger.batched import attempt_of, tries_again
from posology.budget.prices.book import PriceBook, load
from posology.errors import MalformedReply, ProviderError, RateLimited, UnusableReply
from posology.seams.batches import BatchFate, BatchResult
from posology.types import Completion, Finish, Usage

MODEL = "openai:mine"


def book(path: Path, dollars: str) -> PriceBook:
    """Prices per million tokens of input; output costs nothing."""
    path.write_text(f'[models."{MODEL}"]\ninput = "{dollars}"\noutput = "0"\nbatch = "0.5"\n')
    return load(path)


def test_an_attempt_names_the_prices_by_which_it_is_charged(tmp_path: Path) -> None:
    before, after = book(tmp_path / "before.toml", "1"), book(tmp_path / "after.toml", "3")
    entry = {
        "id": "a1", "call": 1, "attempt": 1, "model": MODEL, "started": 0.0, "max_tokens": 10, "tier": "batch",
        "reserved": "1", "prices": before.version, "input_bound": 10, "key": "k",
        "stage": "answer", "prompt": {"name": "direct", "digest": "0" * 16},
    }  # fmt: skip
    done = Completion(text="yes", usage=Usage(input=10), finish=Finish.STOP, served_model="mine")
    replied = BatchResult(id="a1", fate=BatchFate.SUCCEEDED, completion=done)
    charged = attempt_of(entry, replied, prices=after, now=1.0)
    assert (charged.cost, charged.prices) == (Decimal("0.000015"), after.version)
    # of unknown cost: it is charged at its bound, which is by the prices of before
    lost = BatchResult(id="a1", fate=BatchFate.UNREADABLE)
    assert attempt_of(entry, lost, prices=after, now=1.0).prices == before.version


@pytest.mark.parametrize(
    ("kind", "fate", "usage", "again"),
    [
        (MalformedReply, BatchFate.UNREADABLE, None, True),
        # it came whole, and was billed
        (MalformedReply, BatchFate.UNREADABLE, Usage(input=9), False),
        (UnusableReply, BatchFate.ERRORED, Usage(input=9), False),
        # an error in a reply of status 200
        (RateLimited, BatchFate.ERRORED, Usage(), True),
    ],
)
def test_a_row_that_was_billed_goes_into_no_other_batch(
    kind: type[ProviderError], fate: BatchFate, usage: Usage | None, again: bool
) -> None:
    error = kind("no", provider="openai", model=MODEL, usage=usage)
    assert tries_again(BatchResult(id="a1", fate=fate, error=error)) is again
