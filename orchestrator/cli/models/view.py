"""Published form and terminal view of models."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from orchestrator.cli.models.forms import ModelCheck, ModelOutput
from orchestrator.cli.output.tables import print_facts, print_form, print_line
from orchestrator.configuration import measured
from orchestrator.rendering.forms.columns import Cell, Tone, Value, table_of
from orchestrator.rendering.words import UNKNOWN, safe
from orchestrator.settings import Settings
from posology.budget.prices.book import PriceBook
from posology.errors import UnpricedModel
from posology.llm.models.effort import STAGES, effort_of, reasoning_tokens
from posology.llm.models.families import capabilities, retirement_warning
from posology.llm.models.names import ModelName
from posology.types import Usage
from prompts.lengths import reply_tokens

_MARKS = {True: ("ok", "green"), None: ("note", "yellow"), False: ("bad", "red")}
#: tokens whose cost is that of a short prompt's
_SHORT = 1_000
_TEMPERATURE = {
    "always": "0 is sent",
    "without reasoning": "0 is sent at effort none",
    "never": "none is sent",
}
_TOKENIZER = {
    "openai": "published",
    "claude": "bounded by words",
    "newer": "bounded by words, times 1.35",
    "open": "bounded by words",
    "unknown": "unknown: bounded by bytes",
}
_CACHE = {
    "free": "writes cost nothing",
    "asked": "never asked for",
    "declined": "declined in every request",
    "unknown": "unknown: reserved at the highest price",
}


def model_output(model: ModelName, settings: Settings, prices: PriceBook) -> ModelOutput:
    """Return the published form of a model."""
    name = str(model)
    family = capabilities(name)
    checks = measured.read(settings)
    check = checks.get(name.lower())
    levels = {stage: effort_of(name, stage, settings.effort) for stage in STAGES}
    read, written = (
        prices.cost(name, usage) for usage in (Usage(input=_SHORT), Usage(output=_SHORT))
    )
    try:
        prices.check(name)
        priced = True
    except UnpricedModel:
        priced = False
    return ModelOutput(
        model=name,
        known=family.known,
        reasoning=family.reasoning,
        efforts=family.efforts,
        default_effort=family.default_effort,
        stages={str(stage): level for stage, level in levels.items()},
        reply_tokens={
            str(stage): reply_tokens(
                stage,
                settings.max_tokens,
                quotes=settings.quotes,
                reasoning=reasoning_tokens(name, level),
            )
            for stage, level in levels.items()
        },
        temperature=family.temperature,
        context=family.context,
        output=family.output,
        tokenizer=family.tokenizer,
        cache=family.cache,
        tiers=family.tiers,
        batch=family.batch,
        retires=family.retirement(model.name),
        input_usd_per_million=_million(read),
        output_usd_per_million=_million(written),
        priced=priced,
        source=family.source,
        checked=family.checked,
        note=family.note,
        measured=None if check is None else check.day,
        measured_share=None if check is None else check.share,
        raised=measured.factors(checks).get(name.lower(), 1.0),
    )


def print_models(console: Console, models: tuple[ModelOutput, ...], today: date) -> None:
    """Print models as a table, one a row."""
    names = "model, context, $/M in, $/M out, effort, half price, retires"
    rows = (_row(one, today) for one in models)
    print_form(console, table_of(names, rows, texts="model, effort, half price"))


def _row(model: ModelOutput, today: date) -> tuple[Value, ...]:
    lanes = [*(["batch"] if model.batch else []), *(["flex"] if "flex" in model.tiers else [])]
    soon = Tone.WARN if retirement_warning(model.model, today) else None
    return (
        model.model,
        model.context,
        _price(model.input_usd_per_million),
        _price(model.output_usd_per_million),
        f"{model.efforts[0]}…{model.efforts[-1]}" if model.efforts else None,
        ", ".join(lanes) or None,
        None if model.retires is None else Cell(text=str(model.retires), tone=soon),
    )


def print_model(console: Console, model: ModelOutput, today: date) -> None:
    """Print all that is known of a model."""
    if not model.known:
        print_line(console, "No known model family has this name: safe defaults apply.", "yellow")
    if warning := retirement_warning(model.model, today):
        print_line(console, f"{model.model}: {warning}.", "yellow")
    rows = {
        "model": model.model,
        "price": f"{_price(model.input_usd_per_million)} in, {_price(model.output_usd_per_million)} out, $ per million tokens"
        if model.priced
        else "unknown: set POSOLOGY_PRICES; no call is made without a price",
        "context": _context(model),
        "reasoning": model.reasoning,
        "effort levels": ", ".join(model.efforts) or UNKNOWN,
        **{
            f"effort, {stage}": f"{level or 'none sent'}, replies of up to {model.reply_tokens[stage]:,} tokens"
            for stage, level in model.stages.items()
        },
        "temperature": _TEMPERATURE[model.temperature],
        "tokens": _TOKENIZER[model.tokenizer],
        "measured": _measured(model),
        "cache writes": _CACHE[model.cache],
        "tiers": ", ".join([*model.tiers, *(["batch"] if model.batch else [])]),
        "retires": UNKNOWN if model.retires is None else str(model.retires),
        "source": f"{model.source} (checked {model.checked})" if model.checked else UNKNOWN,
        "uncertain": model.note or UNKNOWN,
    }
    print_facts(console, rows.items())


def _measured(one: ModelOutput) -> str:
    if one.measured is None:
        return "never: run posology models check"
    if one.measured_share is None:
        return f"{one.measured}, no tokens counted"
    bound = f"bound raised {one.raised:.2f} times" if one.raised > 1 else "bound holds"
    return f"{one.measured}, at most {one.measured_share:.0%} of the table's bound counted: {bound}"


def _million(cost: Decimal | None) -> Decimal | None:
    return None if cost is None else cost * 1_000_000 / _SHORT


def _price(dollars: Decimal | None) -> str:
    return UNKNOWN if dollars is None else f"{dollars.normalize():f}"


def _context(one: ModelOutput) -> str:
    whole = "unknown" if one.context is None else f"{one.context:,} tokens"
    if one.output is None:
        return whole if one.context is None else f"{whole}, output unknown"
    return f"{whole}, {one.output:,} of them output"


def print_check(console: Console, out: ModelCheck) -> None:
    """Print the findings of a check and its calls."""
    for one in out.findings:
        word, colour = _MARKS[one.ok]
        print_line(
            console,
            Text.assemble((f"{word:<5}", colour), (f"{one.name:<18}", "bold"), safe(one.found)),
        )
    if not out.calls:
        return
    console.print()
    rows = (
        (
            *(call.name, call.effort, call.tokens_in, call.input_bound),
            *(call.tokens_out, call.tokens_reasoning, _price(call.cost_usd), f"{call.seconds:.2f}"),
        )
        for call in out.calls
    )
    names = "call, effort, in, reserved, out, reasoning, $, seconds"
    print_form(console, table_of(names, rows, texts="call, effort"))
    cost = f"${out.charged_usd:f}" if out.cost_usd is None else f"${out.cost_usd:f}"
    print_line(
        console, f"\n{len(out.calls)} calls, {cost}, {out.seconds or 0:.2f} s a call (median)"
    )
