"""Why a question was answered as it was: its decision as a story in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.ask.reasons import dose_in_words, in_words
from orchestrator.cli.output.tables import print_table
from orchestrator.rendering.sources import outcome
from orchestrator.rendering.words import calls, cost, safe, tokens
from policies.affordable import describe
from policies.savings import dollars
from posology.index.search.filters import describe as describe_filters
from posology.published.answers import AskOutput, CompressionOutput
from posology.published.calls import Spending
from posology.published.decisions import Decided, DecisionOutput, OfferOutput
from posology.published.jobs import JobOutput
from posology.types import DECLINE, Filters, Rung

#: text of the features that are explained; the record has all features
_LOOKED_AT: Mapping[str, str] = {
    "preflight.iou_3": "agreement of dense and BM25 on the top 3 (IoU, 0 to 1)",
    "preflight.overlap": "overlap of the two rankings (0 to 1)",
    "preflight.correlation": "their rank correlation (-1 to 1)",
    "qtable.state": "state of the Q-table",
    "qtable.distance": "distance to its centroid",
    "qtable.table": "the Q-table",
    "saving.left": "share of the text that compressing is expected to leave",
    "tried": "passages read before without an answer",
}
_filters = TypeAdapter(Filters)
#: columns of the words at the left
_MARGIN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class _Story:
    """Inputs of an explanation."""

    question: str
    #: ``None``: nothing was decided
    decision: DecisionOutput | None
    #: what it came to, a sentence
    end: str
    #: the policy and strategy that were asked for
    asked: str
    rungs: tuple[Rung, ...]
    #: ``None``: nothing was compressed
    compression: CompressionOutput | None


def why_job(console: Console, job: JobOutput) -> None:
    """The story of a job, however far it has come."""
    asked = job.request.get("strategy") or job.request.get("policy") or "no policy"
    within = filters_in_words(_filters.validate_python(job.request.get("filters") or {}))
    told = _Story(
        question=job.question,
        decision=job.decision,
        end=_end_of_job(job),
        asked=f"{asked} for {job.request.get('k')} passages{within}, by {job.model}",
        rungs=job.result.rungs if job.result else (),
        compression=job.result.compression if job.result else None,
    )
    _show(console, told, title=f"{job.id} is {job.state}")


def why_answer(console: Console, out: AskOutput) -> None:
    """Show how an answer of this process came about."""
    within = filters_in_words(out.filters)
    told = _Story(
        question=out.question,
        decision=out.decision,
        end=f"{outcome(out)}, by {out.strategy}; {_spent(out.spending)}.",
        asked=f"{out.decision.policy}{within}, by {out.model}",
        rungs=out.rungs,
        compression=out.compression,
    )
    _show(console, told, title=outcome(out))


def filters_in_words(filters: Filters | None) -> str:
    """Return the filters in words; empty without filters."""
    return f" ({describe_filters(filters)})" if filters else ""


def _show(console: Console, story: _Story, *, title: str) -> None:
    console.print(Text.assemble((safe(story.question), "bold"), f"\n{safe(title)}"))
    rows = Table(show_header=False, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    rows.add_column(width=_MARGIN, style="dim")
    rows.add_column(overflow="fold")
    for name, shown in _rows(story):
        rows.add_row(Text(name), shown if not isinstance(shown, str) else Text(safe(shown)))
    print_table(console, rows)


def _rows(story: _Story) -> Iterator[tuple[str, RenderableType]]:
    decision = story.decision
    yield "asked for", story.asked
    if decision is None:
        yield "decided", "Nothing was decided yet."
        yield "in the end", story.end
        return
    yield from _decided(decision)
    if story.rungs:
        yield "read", Group(*(_rung(number, rung) for number, rung in enumerate(story.rungs, 1)))
    if story.compression is not None:
        yield "compressed", _compressed(story.compression)
    if decision.then is not None:
        yield "then", "The last call gave no answer, too, so the policy decided again:"
        yield from _decided(decision.then, found=False)
    yield "in the end", story.end
    recorded = [step for one in (decision, decision.then) if one for step in _steps(one)]
    if in_words(recorded) != recorded:
        yield "recorded", Group(*(Text(safe(step), style="dim") for step in recorded))
    versions = (f"{name}: {version}" for name, version in decision.versions.items())
    yield "versions", "\n".join(versions) or "not in the record"


def _decided(decision: Decided, *, found: bool = True) -> Iterator[tuple[str, RenderableType]]:
    if found:
        yield "found", _retrieved(decision)
    numbered = (f"{number}. {step}" for number, step in enumerate(in_words(_steps(decision)), 1))
    yield "why", Group(*(Text(safe(line)) for line in numbered))
    looked = list(_looked_at(decision.features))
    if looked:
        yield "measured", "; ".join(looked)
    if decision.remaining is not None:
        yield "budget left", f"${decision.remaining:f}"
    if decision.offers:
        yield "prices", _offers(decision.offers)
    if decision.strategy == DECLINE:
        cheapest = min((offer.worst for offer in decision.offers), default=None)
        least = "" if cheapest is None else f"; the cheapest way costs ${cheapest:f} at worst"
        yield "decided", Text(f"declined: the remaining budget pays for no answer{least}", "red")
    else:
        said = f"{dose_in_words(describe(decision.dose))}, by the policy {decision.policy}"
        yield "decided", Text(safe(said), style="bold")


def _steps(decision: Decided) -> Sequence[str]:
    return decision.steps or (decision.reason,)


def _retrieved(decision: Decided) -> str:
    passages = decision.features.get("passages")
    if passages is None:
        return "The record does not contain the passages found."
    if not passages:
        return "Nothing."
    index = decision.versions.get("index")
    place = f" in {index}" if index else ""
    sentences = decision.features.get("sentences")
    of = "" if sentences is None else f" of {sentences} sentences"
    return f"{passages} passages{of}{place}."


def _looked_at(features: Mapping[str, Any]) -> Iterator[str]:
    told = 0
    for name, words in _LOOKED_AT.items():
        value = features.get(name)
        if value is None or (name == "tried" and not value):
            continue
        told += 1
        yield f"{words} {value:.3f}" if isinstance(value, float) else f"{words} {value}"
    parts = sum("." in name for name in features) - told
    if told and parts > 0:
        yield f"{parts} more in --json"


def _offers(offers: tuple[OfferOutput, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("dose")
    table.add_column("at worst", justify="right")
    table.add_column("")
    for offer in offers:
        fits = Text("fits", style="green") if offer.fits else Text("over budget", style="yellow")
        first = " to begin" if offer.dose.rungs else ""
        dose = dose_in_words(describe(offer.dose))
        table.add_row(Text(safe(dose)), f"${offer.worst:f}{first}", fits)
    return table


def _rung(number: int, rung: Rung) -> Text:
    used = rung.usage
    took = (
        "tokens unknown" if used is None else f"{used.total_input:,} in + {used.total_output:,} out"
    )
    last = rung.first + rung.passages
    shown = f"{rung.first + 1} to {last}" if rung.passages > 1 else f"{last}"
    end = ("refused", "yellow") if rung.refused else ("answered", "green")
    return Text.assemble(f"{number}. passages {shown}, {took}: ", end)


def _compressed(took: CompressionOutput) -> str:
    """How much was shown, and what that saved, less what it cost."""
    by = f"by {took.compressor} in {took.seconds:.2g} s"
    kind = "" if took.extractive else ", summaries among it"
    if took.tokens is None or took.shown_tokens is None:
        return f"{by}: {took.kept} of {took.sentences} sentences shown whole{kind}."
    said = f"{by}: {took.shown_tokens:,} of {took.tokens:,} tokens shown{kind}"
    if took.saved_usd is None or took.cost_usd is None:
        return f"{said}; the saving is unknown."
    net = took.saved_usd - took.cost_usd
    sign = "-" if net < 0 else ""
    return (
        f"{said}, saved {dollars(took.saved_usd)}, cost {dollars(took.cost_usd)}: "
        f"{sign}{dollars(abs(net))} net."
    )


def _end_of_job(job: JobOutput) -> str:
    spent = _spent(job.spending)
    if job.result is not None:
        return f"{job.result.status} by {job.result.strategy}; {spent}."
    if job.decision is not None and job.decision.strategy == DECLINE:
        return f"The policy declined the question, so the job is {job.state}; {spent}."
    if job.error is not None:
        return f"{job.state}: {job.error.type}: {job.error.message}; {spent}."
    return f"The job is {job.state}; {spent}."


def _spent(spent: Spending) -> str:
    if not spent.attempts:
        return "nothing was sent, and it cost nothing"
    return f"{calls(spent)}, {tokens(spent)} tokens, cost {cost(spent)}"
