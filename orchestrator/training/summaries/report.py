"""A data set and a fine-tuning as a person follows them in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.cli.terminal import money
from orchestrator.training.paid.estimates import money_lines
from posology.published.training import DatasetEstimate, DatasetOutput, FinetuneOutput

#: passages that are told one by one
_TOLD = 20


def estimate_lines(out: DatasetEstimate) -> Iterator[str]:
    """What is to be paid for, and whether it can be."""
    before = f", {out.done:,} are done already" if out.done else ""
    yield f"{out.passages:,} passages to shorten{before}"
    if not out.passages:
        return
    yield from money_lines(out)


def dataset_lines(out: DatasetOutput) -> Iterator[str]:
    """What was made, and what was left out."""
    for one in out.left_out[:_TOLD]:
        yield f"{one.id}: {one.reason} after {one.rounds} replies"
    if len(out.left_out) > _TOLD:
        yield f"… and {len(out.left_out) - _TOLD:,} more"
    if out.out is None:
        return
    made = out.train + out.validation + out.test
    yield (
        f"{made:,} summaries, {out.train:,} to train on, {out.validation:,} to validate by and {out.test:,} to test "
        f"by; {len(out.left_out):,} passages left out; {money(out.spent_usd)} spent"
    )
    if out.mean_share is not None and out.mean_rounds is not None:
        yield (
            f"{out.mean_share:.1%} of the words on average, where {out.share:.0%} ± {out.tolerance:.0%} was asked "
            f"for; {out.mean_rounds:.2f} replies each; {out.first_sentence or 0:.0%} begin with the first sentence"
        )
    yield f"written to {out.out}"


def finetune_lines(out: FinetuneOutput) -> Iterator[str]:
    """What became of a model."""
    yield f"epoch {out.best} of {len(out.losses)} is kept: {out.losses[out.best - 1]:.4f} nats a token"
    if out.left is not None and out.seconds is not None:
        yield (
            f"on the test set {out.test_loss:.4f} nats a token; summaries have {out.left:.1%} of the words, where "
            f"{out.share:.0%} was asked for, and take {out.seconds:.2f} s each on {out.device}"
        )
    yield f"written to {out.out}"
