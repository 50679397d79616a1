"""Tenants: creation, limits, keys, and audits of their ledgers."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from starlette.responses import Response

from orchestrator.console.access import Asked, redirect
from orchestrator.console.money.audits import Audits, begin
from orchestrator.console.money.overview import meters
from orchestrator.console.pages import HOME, whole_number
from orchestrator.rendering.forms.columns import cell, enabled, table
from orchestrator.rendering.forms.money import LIMITS, TENANTS, limits
from orchestrator.spending import balance_outputs
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.limits import FIELDS, NONE, parsed
from posology.budget.tenants.store import Issued
from posology.errors import InvalidQuery, PosologyError, TenantError
from posology.types import Limits

#: tenants on a page
_PAGE = 50
#: limits that a form has as text
_TEXTS = {
    name: LIMITS[name] for name in FIELDS if name not in ("models", "may_ingest", "collections")
}
#: limits that are bars
_METERED = ("day", "month", "total")
_LISTED = "tenant, state, day, month, keys, created"
_MODELS, _COLLECTIONS, _INGEST, _YES = "models", "collections", "may_ingest", "yes"
#: time for which replaced keys stay valid, in seconds, and its name
GRACES = {"0": "at once", "3600": "in an hour", "86400": "in a day", "604800": "in a week"}


async def listed(asked: Asked) -> Response:
    """Show some tenants, and the form that creates one."""
    given = _fields(Limits(models=asked.api.settings.own_models))
    return await _list(asked, given)


async def created(asked: Asked) -> Response:
    """Create a tenant, and show its key once."""
    try:
        issued = await asked.api.tenants().create(
            asked.form.get("name", "").strip(), _limits(asked)
        )
    except PosologyError as error:
        return await _list(asked, asked.form, failed=error)
    return await _page(asked, issued.tenant.name, issued=issued)


async def shown(asked: Asked) -> Response:
    """Show a tenant: limits, balances and keys."""
    return await _page(asked, asked.request.path_params["tenant"])


async def limited(asked: Asked) -> Response:
    """Change the limits whose fields were changed; others may have been changed meanwhile elsewhere."""
    name, form = asked.request.path_params["tenant"], asked.form
    only = [one for one in FIELDS if form.get(one, "") != form.get(f"was_{one}", "")]
    try:
        await asked.api.tenants().limit(name, _limits(asked), only=only)
    except TenantError:
        raise
    except PosologyError as error:
        return await _page(asked, name, given=form, failed=error)
    return redirect(f"{HOME}/tenants/{name}")


async def switched(asked: Asked) -> Response:
    """Disable a tenant, or enable it."""
    name, tenants = asked.request.path_params["tenant"], asked.api.tenants()
    match asked.form.get("to"):
        case "disabled":
            await tenants.disable(name)
        case "enabled":
            await tenants.enable(name)
        case other:
            raise InvalidQuery(f"to must be disabled or enabled (got {other!r})", field="to")
    return redirect(f"{HOME}/tenants/{name}")


async def rotated(asked: Asked) -> Response:
    """Make a new key, and show it once."""
    grace = asked.form.get("grace", "0")
    if grace not in GRACES:
        raise InvalidQuery(f"grace must be one of {', '.join(GRACES)}", field="grace")
    issued = await asked.api.tenants().rotate(
        asked.request.path_params["tenant"], grace=float(grace)
    )
    return await _page(asked, issued.tenant.name, issued=issued)


async def revoked(asked: Asked) -> Response:
    """End one key."""
    name = asked.request.path_params["tenant"]
    await asked.api.tenants().revoke(name, asked.form.get("key", ""))
    return redirect(f"{HOME}/tenants/{name}")


async def audited(asked: Asked) -> Response:
    """Begin an audit of the tenant's ledger."""
    name = asked.request.path_params["tenant"]
    await asked.api.tenants().get(name)
    return await begin(asked, name, redirect(f"{HOME}/tenants/{name}"))


async def _list(
    asked: Asked, given: Mapping[str, str], failed: PosologyError | None = None
) -> Response:
    cursor = whole_number(asked.request.query_params.get("cursor") or "0", "cursor", most=2**64 - 1)
    found, following = await asked.api.tenants().some(cursor, limit=_PAGE)
    return asked.page(
        "tenants.html",
        200 if failed is None else 422,
        tenants=table(TENANTS, found, _LISTED),
        next=following,
        given=given,
        was={},
        labels=_TEXTS,
        failed=None if failed is None else failed.message,
    )


async def _page(
    asked: Asked,
    name: str,
    *,
    issued: Issued | None = None,
    given: Mapping[str, str] | None = None,
    failed: PosologyError | None = None,
) -> Response:
    store = asked.api.jobs()
    tenant = await asked.api.tenants().get(name)
    standing = await RedisLedger(store.redis, store.url, tenant=name).balances()
    was = _fields(tenant.limits)
    if given is not None:
        # what this form began with, so that it still changes nothing else
        was = {field: given.get(f"was_{field}", "") for field in was}
    return asked.page(
        "tenant.html",
        200 if failed is None else 422,
        tenant=tenant,
        state=enabled(disabled=tenant.disabled),
        meters=meters(balance_outputs(name, standing)),
        limits=[
            (name, cell(value))
            for field, name, value in limits(tenant.limits)
            if field not in _METERED
        ],
        issued=issued,
        graces=GRACES,
        labels=_TEXTS,
        was=was,
        given=was if given is None else given,
        failed=None if failed is None else failed.message,
        audited=await Audits(store.redis, store.url, name).last(),
    )


def _limits(asked: Asked) -> Limits:
    """Return the limits of a form; an empty field: no limit.

    Raises:
        InvalidLimit: naming the first wrong one.
    """
    form = asked.form
    texts = {name: form.get(name, "").strip() or NONE for name in _TEXTS}
    return Limits(
        **parsed(texts),
        models=_names(form.get(_MODELS, "")) or None,
        collections=_names(form.get(_COLLECTIONS, "")),
        may_ingest=form.get(_INGEST) == _YES,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for one in text.split(",") if (name := one.strip()))


def _fields(limits: Limits) -> dict[str, str]:
    """Return limits as the fields of a form."""
    found = {name: _text(getattr(limits, name)) for name in _TEXTS}
    lists = {_MODELS: limits.models or (), _COLLECTIONS: limits.collections}
    found |= {name: ", ".join(names) for name, names in lists.items()}
    return {**found, _INGEST: _YES if limits.may_ingest else ""}


def _text(limit: Decimal | int | None) -> str:
    if limit is None:
        return ""
    return f"{limit.normalize():f}" if isinstance(limit, Decimal) else str(limit)
