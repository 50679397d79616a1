"""Tenants: created, limited, looked at, given keys."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json, run
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from posology.budget.tenants.store import Tenant, TenantStore
    from posology.types import Balance, Limits

app = typer.Typer(
    help="Looks after tenants: their limits and API keys. It needs Redis itself, as its operator.",
    no_args_is_help=True,
)

_Found = TypeVar("_Found")
#: what takes a limit away
_NO = "none"
#: tries at a command of Redis
_PATIENCE = 8

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tenant's name.")]
DayOption = Annotated[
    str | None, typer.Option("--day", metavar="USD", help="Dollars on one day, UTC; or none.")
]
MonthOption = Annotated[
    str | None, typer.Option("--month", metavar="USD", help="Dollars in one month, UTC; or none.")
]
TotalOption = Annotated[
    str | None, typer.Option("--total", metavar="USD", help="Dollars, ever; or none.")
]
JobOption = Annotated[
    str | None, typer.Option("--job", metavar="USD", help="Dollars for one job; or none.")
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="provider:name or provider:*; repeat for each that is allowed; or none: all are.",
    ),
]
CallsOption = Annotated[
    str | None, typer.Option("--calls", metavar="N", help="Model calls at once; or none.")
]
RpmOption = Annotated[
    str | None, typer.Option("--rpm", metavar="N", help="Requests to models a minute; or none.")
]
TpmOption = Annotated[
    str | None,
    typer.Option("--tpm", metavar="N", help="Tokens a minute, by the calls' bounds; or none."),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """Limits that a command line says."""

    limits: Limits
    #: names of those that it says
    names: tuple[str, ...]


@app.command()
def create(
    name: NameArgument,
    *,
    day: DayOption = None,
    month: MonthOption = None,
    total: TotalOption = None,
    job: JobOption = None,
    model: ModelsOption = None,
    calls: CallsOption = None,
    rpm: RpmOption = None,
    tpm: TpmOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a tenant, and print its API key, which is shown this once."""
    with errors(as_json=as_json):
        asked = _asked(day, month, total, job, model, calls, rpm, tpm)

        async def work(store: TenantStore, balances: _Balances) -> None:
            issued = await store.create(name, asked.limits)
            _tell(issued.tenant, await balances(name), as_json=as_json, key=issued.key)

        _with_tenants(work)


@app.command("list")
def list_(*, as_json: JsonOption = False) -> None:
    """Show all tenants with their limits of money."""
    from orchestrator.cli.money.tenants_view import show_tenants, tenant_summary
    from posology.published.tenants import TenantList

    with errors(as_json=as_json):

        async def work(store: TenantStore, _: _Balances) -> list[Tenant]:
            return await store.all()

        found = _with_tenants(work)
        if as_json:
            print_json(TenantList(tenants=tuple(map(tenant_summary, found))))
        else:
            show_tenants(Console(), found)


@app.command()
def show(name: NameArgument, *, as_json: JsonOption = False) -> None:
    """Show a tenant's limits, what it has spent, and its keys."""
    with errors(as_json=as_json):

        async def work(store: TenantStore, balances: _Balances) -> None:
            _tell(await store.get(name), await balances(name), as_json=as_json)

        _with_tenants(work)


@app.command("set")
def set_(
    name: NameArgument,
    *,
    day: DayOption = None,
    month: MonthOption = None,
    total: TotalOption = None,
    job: JobOption = None,
    model: ModelsOption = None,
    calls: CallsOption = None,
    rpm: RpmOption = None,
    tpm: TpmOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change limits that are named; `none` takes one away."""
    with errors(as_json=as_json):
        asked = _asked(day, month, total, job, model, calls, rpm, tpm)
        if not asked.names:
            raise typer.BadParameter("say which limit, e.g. --day 5 or --day none")

        async def work(store: TenantStore, balances: _Balances) -> None:
            tenant = await store.limit(name, asked.limits, only=asked.names)
            _tell(tenant, await balances(name), as_json=as_json)

        _with_tenants(work)


@app.command()
def disable(name: NameArgument, *, as_json: JsonOption = False) -> None:
    """Refuse a tenant's keys and let nothing more be spent for it; calls under way settle."""
    with errors(as_json=as_json):

        async def work(store: TenantStore, balances: _Balances) -> None:
            _tell(await store.disable(name), await balances(name), as_json=as_json)

        _with_tenants(work)


@app.command()
def enable(name: NameArgument, *, as_json: JsonOption = False) -> None:
    """Take a disable back."""
    with errors(as_json=as_json):

        async def work(store: TenantStore, balances: _Balances) -> None:
            _tell(await store.enable(name), await balances(name), as_json=as_json)

        _with_tenants(work)


@app.command("rotate-key")
def rotate_key(
    name: NameArgument,
    *,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="For which the keys until now go on to be accepted."),
    ] = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Print a new API key, which is shown this once, and end those until now."""
    with errors(as_json=as_json):

        async def work(store: TenantStore, balances: _Balances) -> None:
            issued = await store.rotate(name, grace=grace)
            _tell(issued.tenant, await balances(name), as_json=as_json, key=issued.key)

        _with_tenants(work)


_Balances = Callable[[str], Awaitable["tuple[Balance, ...]"]]


def _with_tenants(work: Callable[[TenantStore, _Balances], Awaitable[_Found]]) -> _Found:
    """Do something with the tenants of this environment's Redis."""
    from orchestrator.jobs.place import store_url
    from posology.budget.ledger.redis import RedisLedger
    from posology.budget.tenants.store import TenantStore
    from posology.store.connection import connect

    url = store_url(load_settings())

    async def opened() -> _Found:
        redis = connect(url, patience=_PATIENCE)
        try:

            async def balances(name: str) -> tuple[Balance, ...]:
                return await RedisLedger(redis, url, tenant=name).balances()

            return await work(TenantStore(redis, url), balances)
        finally:
            await redis.aclose()

    return run(opened)


def _asked(
    day: str | None,
    month: str | None,
    total: str | None,
    job: str | None,
    model: list[str] | None,
    calls: str | None,
    rpm: str | None,
    tpm: str | None,
) -> _Asked:
    """Limits that were written.

    Raises:
        InvalidLimit: one cannot be such.
    """
    from posology.budget.tenants.limits import amount, number
    from posology.types import Limits

    money = {"day": day, "month": month, "total": total, "job": job}
    counts = {"calls": calls, "requests_per_minute": rpm, "tokens_per_minute": tpm}
    found: dict[str, Any] = {}
    for name, text in money.items():
        if text is not None:
            found[name] = None if text == _NO else amount(text, name)
    for name, text in counts.items():
        if text is not None:
            found[name] = None if text == _NO else number(text, name)
    if model:
        found["models"] = None if model == [_NO] else tuple(model)
    return _Asked(limits=Limits(**found), names=tuple(found))


def _tell(
    tenant: Tenant, balances: tuple[Balance, ...], *, as_json: bool, key: str | None = None
) -> None:
    """A tenant as it is now. A new key stands alone on standard output, for a script to take it."""
    from orchestrator.cli.money.tenants_view import exhausted, show_tenant, tenant_output

    if as_json:
        print_json(tenant_output(tenant, balances, key=key))
        return
    show_tenant(Console(stderr=key is not None), tenant, balances)
    for line in exhausted(balances):
        sys.stderr.write(f"{line}\n")
    if key is not None:
        sys.stderr.write("its API key, which is shown this once:\n")
        sys.stderr.flush()
        sys.stdout.write(f"{key}\n")
        sys.stdout.flush()
