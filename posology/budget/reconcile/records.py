"""Records of exports of all providers: the names of their fields, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from posology.budget.reconcile.bands import EXACT, plain
from posology.budget.reconcile.report import Measure

OPENAI, ANTHROPIC = "openai", "anthropic"
#: providers, with their names for people
PROVIDERS: Mapping[str, str] = {OPENAI: "OpenAI", ANTHROPIC: "Anthropic"}
#: names of a bucket's beginning in JSON pages
PAGES: Mapping[str, set[str]] = {OPENAI: {"start_time"}, ANTHROPIC: {"starting_at"}}
#: columns that only tables of a provider have
OWN: Mapping[str, set[str]] = {
    OPENAI: {"num_model_requests", "num_requests", "n_context_tokens_total", "amount_value"},
    ANTHROPIC: {"usage_date_utc"},
}
#: resolution of dollars: far below the price of a token
_EXPONENT = -18
_KEPT = Decimal(1).scaleb(_EXPONENT)
#: maximum rounding of an amount in a spreadsheet: half a cent, in dollars
_HALF_CENT = Decimal("0.005")
_GROUPED = re.compile(r"-?\$?([0-9]+|[1-9][0-9]{0,2}(,[0-9]{3})+)(\.[0-9]*)?")
_DATE = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})")


class Bad(ValueError):
    """A record or a file cannot be read; the message says why."""

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


def _number(value: Any) -> Any:
    """Take the signs of a spreadsheet out of a number."""
    if isinstance(value, bool):
        raise ValueError("a number")
    if isinstance(value, str) and _GROUPED.fullmatch(value.strip()):
        return re.sub(r"[$,]", "", value.strip())
    return value


def _time(value: Any) -> Any:
    """Write a day of a spreadsheet, and a time in UTC, as ISO 8601 does."""
    if not isinstance(value, str):
        return value
    if day := _DATE.fullmatch(value.strip()):
        return f"{day[1]}-{day[2]:>02}-{day[3]:>02}"
    return value.strip().removesuffix(" UTC")


_Form = TypeVar("_Form", bound=BaseModel)
Count = Annotated[int, BeforeValidator(_number), Field(ge=0, le=10**15)]
#: dollars or cents; credits are negative
Amount = Annotated[Decimal, BeforeValidator(_number), Field(ge=-(10**9), le=10**9)]
#: POSIX seconds or milliseconds, a day, or ISO 8601; UTC by default
Moment = Annotated[datetime, BeforeValidator(_time)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)]


@lru_cache(maxsize=1_000)
def normal(name: str) -> str:
    """Return a name in lower case with underscores: ``Usage Date (UTC)`` is ``usage_date_utc``."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def posix(at: datetime) -> float:
    """Return POSIX seconds; a time without a zone is UTC."""
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def names_of(*fields: str) -> set[str]:
    """Return the names that fields of a record are read from."""
    aliases = [Record.model_fields[field].validation_alias for field in fields]
    choices = [alias.choices for alias in aliases if isinstance(alias, AliasChoices)]
    paths = [path.path for found in choices for path in found if isinstance(path, AliasPath)]
    return {str(path[0]) for path in paths if len(path) == 1}


def _of(names: str) -> Any:
    """Return a field that is read from the first of some names, beside or within ``usage``; ``None``: it has none."""
    paths = [name.split(".") for name in names.split()]
    return Field(
        default=None,
        validation_alias=AliasChoices(
            *(AliasPath(*within, *path) for path in paths for within in ((), ("usage",)))
        ),
    )


class Record(BaseModel):
    """One record: usage or costs of a time and a model, or a request. An unknown form is an error, never a guess."""

    model_config = ConfigDict(frozen=True)

    start: Moment | None = _of(
        "start_time starting_at usage_date_utc started_at timestamp created_at created time date "
        "start_time_iso"
    )
    end: Moment | None = _of("end_time ending_at end_time_iso")
    model: Name | None = _of("model model_version model_name served_model")
    #: billed item
    item: Name | None = _of("line_item description")
    #: kind of a billed item
    sort: Name | None = _of("cost_type")
    cost: Amount | None = _of(
        "amount.value amount_value cost_usd cost amount_usd amount spend response_cost"
    )
    currency: Name | None = _of("amount.currency amount_currency currency")
    #: kind of a result of OpenAI
    object: Name | None = _of("object")
    provider: Name | None = _of("provider vendor")
    #: the provider's id of a request
    request_id: Name | None = _of(
        "request_id x_request_id provider_request_id openai_request_id req_id"
    )
    #: our id, which the provider got as well
    client_id: Name | None = _of("client_request_id x_client_request_id")
    #: the provider's id of a request, or of another thing
    id: Name | None = _of("id")
    requests: Count | None = _of("num_model_requests num_requests n_requests requests")
    #: input that includes cached tokens
    whole: Count | None = _of("prompt_tokens total_input_tokens n_context_tokens_total")
    #: input that includes cached tokens for OpenAI, and excludes them for Anthropic
    input: Count | None = _of("input_tokens")
    uncached: Count | None = _of(
        "uncached_input_tokens usage_input_tokens_no_cache input_uncached_tokens"
    )
    read: Count | None = _of(
        "cache_read_input_tokens usage_input_tokens_cache_read input_cached_tokens cached_tokens "
        "n_cached_context_tokens_total cached_input_tokens cache_read_tokens "
        "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens"
    )
    written: Count | None = _of(
        "cache_creation_input_tokens usage_input_tokens_cache_write input_cache_write_tokens "
        "cache_write_tokens"
    )
    written_5m: Count | None = _of(
        "cache_creation.ephemeral_5m_input_tokens usage_input_tokens_cache_write_5m "
        "cache_creation_ephemeral_5m_input_tokens cache_write_5m_tokens"
    )
    written_1h: Count | None = _of(
        "cache_creation.ephemeral_1h_input_tokens usage_input_tokens_cache_write_1h "
        "cache_creation_ephemeral_1h_input_tokens cache_write_1h_tokens"
    )
    output: Count | None = _of(
        "output_tokens completion_tokens usage_output_tokens n_generated_tokens_total"
    )

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, cells: Any) -> Any:
        """Leave out what is empty: it is unknown."""
        if not isinstance(cells, dict):
            return cells
        return {normal(name): cell for name, cell in cells.items() if cell not in (None, "")}

    def tokens(self, provider: str) -> dict[Measure, int]:
        """Return the tokens that the record has.

        Raises:
            Bad: more of the input is cached than there is.
        """
        whole, uncached, written = self.whole, self.uncached, self.written
        if provider == ANTHROPIC:
            uncached = self.input if uncached is None else uncached
        else:
            whole = self.input if whole is None else whole
        parts = [n for n in (self.written_5m, self.written_1h) if n is not None]
        if written is None and parts:
            written = sum(parts)
        if self.read is not None:
            # older exports lack cache writes
            cached = self.read + (written or 0)
            if whole is not None:
                uncached = whole - cached
                if uncached < 0:
                    raise Bad(f"{cached} cached tokens of {whole}")
            elif uncached is not None:
                whole = uncached + cached
        found = {
            Measure.INPUT: whole,
            Measure.UNCACHED: uncached,
            Measure.CACHE_READ: self.read,
            Measure.CACHE_WRITE: written,
            Measure.CACHE_WRITE_5M: self.written_5m,
            Measure.CACHE_WRITE_1H: self.written_1h,
            Measure.OUTPUT: self.output,
        }
        return {measure: n for measure, n in found.items() if n is not None}

    def paid(self, cents: Decimal | int = 1) -> Decimal | None:
        """Return the dollars; ``None``: unknown.

        Raises:
            Bad: they are in another currency.
        """
        if self.currency is not None and self.currency.lower() != "usd":
            raise Bad(f"currency must be USD (got {self.currency!r})")
        if self.cost is None:
            return None
        return plain((self.cost * cents).quantize(_KEPT, context=EXACT))

    def rounding(self) -> Decimal:
        """Return the maximum rounding of the amount in a spreadsheet, by its decimals, in dollars."""
        exponent = 0 if self.cost is None else int(self.cost.as_tuple().exponent)
        return min(_HALF_CENT, Decimal(5).scaleb(max(exponent, _EXPONENT) - 1))


def parsed(form: type[_Form], value: object, line: int | None = None) -> _Form:
    """Return a value as a form.

    Raises:
        Bad: it does not fit; the message says where.
    """
    try:
        return form.model_validate(value)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]
    place = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in wrong["loc"])
    must = re.sub(r"^.*?nput should be|^Value error,", "must be", wrong["msg"])
    must = re.sub(r" or instance of \w+", "", must.replace("Field required", "is missing"))
    given = repr(wrong["input"])
    got = given if len(given) <= 60 else f"{given[:57]}…"
    raise Bad(f"{place.removeprefix('.') or 'it'} {must} (got {got})", line=line)
