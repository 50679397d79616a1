"""Make a data set of passages and summaries with a paid model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import JsonOption, errors, print_json, run
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.purchases import (
    PaymentOptions,
    carry_out,
    check_request,
    cost_lines,
    listed,
    say,
)
from orchestrator.cli.question_options import RequestOptions
from orchestrator.rendering.words import money
from orchestrator.settings import load_settings
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.training.forms import DatasetEstimate, DatasetOutput
    from orchestrator.training.paid.run import Terms
    from orchestrator.training.summaries.run import Wanted
    from orchestrator.training.summaries.sample import Drawn, Wish
    from orchestrator.training.summaries.shortener import Shortener

#: suffix of the run's file, after the name of the data set's file
_RUN = ".run.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleOptions(Group):
    """Passages to shorten."""

    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            "--corpus",
            metavar="FILE",
            help="Passages as `posology ingest` reads them (JSON Lines). Repeatable.",
        ),
    ] = None
    index: Annotated[
        str | None,
        typer.Option("--index", metavar="DIR", help="Index to take passages from instead."),
    ] = None
    count: Annotated[int, typer.Option("--count", min=1, help="Number of passages.")] = 500
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed for sampling.")
    ] = 0
    least_words: Annotated[
        int, typer.Option("--least-words", min=1, help="Minimum words of a passage.")
    ] = 60
    most_words: Annotated[
        int,
        typer.Option(
            "--most-words",
            min=1,
            help="Maximum words of a passage. A model of 512 tokens takes about 340 words.",
        ),
    ] = 340

    def check(self) -> None:
        """Check that there is one source of passages.

        Raises:
            typer.BadParameter: there is none, or two.
        """
        if (not self.corpus) == (self.index is None):
            raise typer.BadParameter("give either --corpus FILE or --index DIR")

    def wish(self) -> Wish:
        """Return the sample to draw."""
        from orchestrator.training.summaries.sample import Wish

        return Wish(count=self.count, seed=self.seed, least=self.least_words, most=self.most_words)

    def draw(self) -> Drawn:
        """Draw the sample."""
        from orchestrator.training.summaries.sample import draw, of_files, of_index

        wish = self.wish()
        if self.index is None:
            return draw(of_files(tuple(self.corpus or ())), wish)
        from orchestrator.service import index_place
        from posology.index.store import Index

        return draw(of_index(Index.open(index_place(load_settings(), self.index)), wish), wish)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShorteningOptions(Group):
    """How a passage is shortened."""

    share: Annotated[
        float,
        typer.Option(
            "--share", min=0.05, max=0.95, help="Target compression ratio (share of words kept)."
        ),
    ] = 0.3
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0,
            max=0.5,
            help="Accepted deviation from --share, as a share of the passage's words.",
        ),
    ] = 0.1
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=20, help="Maximum replies for a passage.")
    ] = 4

    def check(self) -> None:
        """Check the length range.

        Raises:
            typer.BadParameter: an empty summary would fit.
        """
        if self.tolerance >= self.share:
            raise typer.BadParameter(
                f"--tolerance must be less than --share (got {self.tolerance:g} and {self.share:g})"
            )

    def shortener(self, model: str, max_tokens: int | None, effort: str | None) -> Shortener:
        """Return the conversation with a model."""
        from orchestrator.training.summaries.shortener import Shortener

        return Shortener(
            model=model,
            share=self.share,
            tolerance=self.tolerance,
            rounds=self.rounds,
            max_tokens=max_tokens,
            effort=effort,
        )


class WritingOptions(RequestOptions):
    """The model that writes summaries."""

    names = ("model", "max_tokens", "effort")


@grouped
def dataset(
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the data set.")],
    sample: SampleOptions,
    shortening: ShorteningOptions,
    writing: WritingOptions,
    payment: PaymentOptions,
    as_json: JsonOption = False,
) -> None:
    """Make a data set to fine-tune a summarization model: passages and their summaries.

    A reply of the wrong length, or with a number, negation or drug that the passage does not have, is requested
    again. The estimated cost is printed first, and at a terminal you are asked to confirm. Each reply is kept in
    OUT.run.jsonl: the same command resumes an interrupted run and pays for no call twice. Exit status 1: some calls
    failed.
    """
    sample.check()
    shortening.check()
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output
        from orchestrator.training.summaries.run import Wanted

        check_output(out)
        settings = load_settings()
        request, cap = check_request(writing, payment.max_cost, settings)
        wanted = Wanted(
            drawn=sample.draw(),
            wish=sample.wish(),
            shortener=shortening.shortener(request.model, request.max_tokens, request.effort),
        )
        done = _make(wanted, payment.terms(settings, cap), payment, out, as_json=as_json)
        if as_json:
            print_json(done)
        else:
            say(_report(done))
    if any(one.reason == "failed" for one in done.left_out):
        raise typer.Exit(SOME_BAD)


def _make(
    wanted: Wanted, terms: Terms, payment: PaymentOptions, out: Path, *, as_json: bool
) -> DatasetOutput:
    """Shorten the remaining passages and write the data set."""
    from orchestrator.training.paid.run import prepare
    from orchestrator.training.summaries.rows import open_run
    from orchestrator.training.summaries.run import conclude, dataset_estimate, output

    if not wanted.drawn.passages:
        raise InputError("there is no passage to shorten")
    with open_run(out.with_name(out.name + _RUN)) as file:
        paid, quote = run(
            lambda: prepare(terms, wanted.shortener.model, lambda _: wanted.plan(file))
        )
        estimate = dataset_estimate(wanted, quote)
        say(_estimate_lines(estimate))
        if not carry_out(paid, terms, payment, as_json=as_json):
            return output(wanted, file, estimate)
        return run(lambda: conclude(wanted, file, estimate, out))


def _estimate_lines(out: DatasetEstimate) -> Iterable[str]:
    before = f"; {out.done:,} already done" if out.done else ""
    yield f"{out.passages:,} passages to shorten{before}"
    if out.passages:
        yield from cost_lines(out)


def _report(out: DatasetOutput) -> Iterator[str]:
    yield from listed(
        [f"{one.id}: {one.reason} after {one.rounds} replies" for one in out.left_out]
    )
    if out.out is None:
        return
    made = out.train + out.validation + out.test
    yield (
        f"{made:,} summaries: {out.train:,} for training, {out.validation:,} for validation, {out.test:,} for testing; "
        f"{len(out.left_out):,} passages left out; {money(out.spent_usd)} spent"
    )
    if out.mean_share is not None and out.mean_rounds is not None:
        yield (
            f"mean compression ratio {out.mean_share:.1%} (target {out.share:.0%} ± {out.tolerance:.0%}), "
            f"{out.mean_rounds:.2f} replies each, {out.first_sentence or 0:.0%} begin with the first sentence"
        )
    yield f"data set written to {out.out}"
