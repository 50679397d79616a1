"""The ``tenants`` commands: create and limit tenants, and manage their API keys."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json, run
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from posology.budget.tenants.store import Issued, Tenant, TenantStore
    from posology.types import Balance, Limits

app = typer.Typer(
    help="Manage tenants, their limits and their API keys. Needs direct access to Redis.",
)

_Found = TypeVar("_Found")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the tenant.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitOptions(Group):
    """Limits of a tenant."""

    day: Annotated[
        str | None,
        typer.Option("--day", metavar="USD", help="Budget per day (UTC) in dollars, or none."),
    ] = None
    month: Annotated[
        str | None,
        typer.Option("--month", metavar="USD", help="Budget per month (UTC) in dollars, or none."),
    ] = None
    total: Annotated[
        str | None,
        typer.Option("--total", metavar="USD", help="Total budget in dollars, or none."),
    ] = None
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="USD", help="Budget per job in dollars, or none."),
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Allowed model, provider:name or provider:*; repeatable. none: all models. Default at creation: the configured "
            "ones.",
        ),
    ] = None
    calls: Annotated[
        str | None,
        typer.Option("--calls", metavar="N", help="Maximum concurrent model calls, or none."),
    ] = None
    rpm: Annotated[
        str | None,
        typer.Option("--rpm", metavar="N", help="Model requests per minute, or none."),
    ] = None
    tpm: Annotated[
        str | None,
        typer.Option(
            "--tpm", metavar="N", help="Tokens per minute, counted at the calls' bounds, or none."
        ),
    ] = None

    queued: Annotated[
        str | None,
        typer.Option(
            "--queued",
            metavar="N",
            help="Maximum waiting jobs. none: the limit of POSOLOGY_MAX_QUEUED.",
        ),
    ] = None
    stored: Annotated[
        str | None,
        typer.Option(
            "--stored",
            metavar="MIB",
            help="Maximum MiB of Redis for the tenant's jobs. none: the limit of POSOLOGY_MAX_STORED.",
        ),
    ] = None

    may_ingest: Annotated[
        bool | None,
        typer.Option(
            "--may-ingest/--may-not-ingest",
            help="Whether the tenant may upload files, which are added to the index of all tenants. Default: no.",
        ),
    ] = None

    collection: Annotated[
        list[str] | None,
        typer.Option(
            "--collection",
            metavar="NAME",
            help="Collection of POSOLOGY_COLLECTIONS that the tenant may read; repeatable. none: the default index alone. "
            "Default at creation: none.",
        ),
    ] = None

    def limits(self) -> tuple[Limits, tuple[str, ...]]:
        """Return the limits, and the names of those that were given.

        Raises:
            InvalidLimit: a value is invalid.
        """
        from posology.budget.tenants.limits import NONE, parsed
        from posology.types import Limits

        given = {
            "day": self.day,
            "month": self.month,
            "total": self.total,
            "job": self.job,
            "calls": self.calls,
            "requests_per_minute": self.rpm,
            "tokens_per_minute": self.tpm,
            "queued": self.queued,
            "stored": self.stored,
        }
        found = parsed({name: text for name, text in given.items() if text is not None})
        if self.model:
            found["models"] = None if self.model == [NONE] else tuple(self.model)
        if self.collection:
            found["collections"] = () if self.collection == [NONE] else tuple(self.collection)
        if self.may_ingest is not None:
            found["may_ingest"] = self.may_ingest
        return Limits(**found), tuple(found)


@app.command()
@grouped
def create(name: NameArgument, *, options: LimitOptions, as_json: JsonOption = False) -> None:
    """Create a tenant and print its API key. The key is shown only once.

    Without --model, the tenant may use the models that are configured now: POSOLOGY_MODEL and a paid embedder.
    """
    with errors(as_json=as_json):
        limits, names = options.limits()
        if "models" not in names:
            limits = replace(limits, models=load_settings().own_models)

        _print(name, lambda store: store.create(name, limits), as_json=as_json)


@app.command("list")
def list_(*, as_json: JsonOption = False) -> None:
    """List all tenants with their budgets."""
    from orchestrator.cli.money.tenants_form import TenantList
    from orchestrator.cli.money.tenants_view import show_tenants, tenant_summary

    with errors(as_json=as_json):
        found = _with_tenants(lambda store, _: store.all())
        if as_json:
            print_json(TenantList(tenants=tuple(map(tenant_summary, found))))
        else:
            show_tenants(Console(), found)


@app.command()
def show(name: NameArgument, *, as_json: JsonOption = False) -> None:
    """Show the limits, spending and keys of a tenant."""
    _print(name, lambda store: store.get(name), as_json=as_json)


@app.command("set")
@grouped
def set_(name: NameArgument, *, options: LimitOptions, as_json: JsonOption = False) -> None:
    """Change the given limits; `none` removes a limit."""
    with errors(as_json=as_json):
        limits, names = options.limits()
        if not names:
            raise typer.BadParameter("give at least one limit, e.g. --day 5 or --day none")

        _print(name, lambda store: store.limit(name, limits, only=names), as_json=as_json)


@app.command()
def disable(name: NameArgument, *, as_json: JsonOption = False) -> None:
    """Reject a tenant's keys and all its new calls. Calls in flight are settled."""
    _print(name, lambda store: store.disable(name), as_json=as_json)


@app.command()
def enable(name: NameArgument, *, as_json: JsonOption = False) -> None:
    """Enable a disabled tenant."""
    _print(name, lambda store: store.enable(name), as_json=as_json)


@app.command("rotate-key")
def rotate_key(
    name: NameArgument,
    *,
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long the old keys stay valid.")
    ] = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Print a new API key and revoke the old ones. The key is shown only once."""
    _print(name, lambda store: store.rotate(name, grace=grace), as_json=as_json)


@app.command("revoke-key")
def revoke_key(
    name: NameArgument,
    key: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, from `tenants show`.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """End one API key of a tenant. Its other keys stay valid."""
    _print(name, lambda store: store.revoke(name, key), as_json=as_json)


_Balances = Callable[[str], Awaitable["tuple[Balance, ...]"]]


def _print(
    name: str, change: Callable[[TenantStore], Awaitable[Tenant | Issued]], *, as_json: bool
) -> None:
    """Change or read a tenant, and print it; of a new key, see :func:`_show`."""
    from posology.budget.tenants.store import Issued

    async def work(store: TenantStore, balances: _Balances) -> None:
        found = await change(store)
        tenant, key = (found.tenant, found.key) if isinstance(found, Issued) else (found, None)
        _show(tenant, await balances(name), as_json=as_json, key=key)

    with errors(as_json=as_json):
        _with_tenants(work)


def _with_tenants(work: Callable[[TenantStore, _Balances], Awaitable[_Found]]) -> _Found:
    """Run a function with the tenants of the configured Redis."""
    from orchestrator.jobs.place import store_url
    from posology.budget.ledger.redis import RedisLedger
    from posology.budget.tenants.store import TenantStore
    from posology.store.connection import FEW_TRIES, connect

    url = store_url(load_settings())

    async def opened() -> _Found:
        redis = connect(url, tries=FEW_TRIES)
        try:

            async def balances(name: str) -> tuple[Balance, ...]:
                return await RedisLedger(redis, url, tenant=name).balances()

            return await work(TenantStore(redis, url), balances)
        finally:
            await redis.aclose()

    return run(opened)


def _show(
    tenant: Tenant, balances: tuple[Balance, ...], *, as_json: bool, key: str | None = None
) -> None:
    """Print a tenant. A new key is the only text on standard output, for scripts."""
    from orchestrator.cli.money.tenants_view import exhausted, show_tenant, tenant_output

    if as_json:
        print_json(tenant_output(tenant, balances, key=key))
        return
    show_tenant(Console(stderr=key is not None), tenant, balances)
    for line in exhausted(balances):
        sys.stderr.write(f"{line}\n")
    if key is not None:
        sys.stderr.write("API key (shown only once):\n")
        sys.stderr.flush()
        sys.stdout.write(f"{key}\n")
        sys.stdout.flush()
