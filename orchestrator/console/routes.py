"""Addresses of the console, and the checks before each of its pages."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import Enum, auto

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api import problems
from orchestrator.api.context import Context
from orchestrator.console import access, ask, batches, jobs, literature, watches
from orchestrator.console.access import FIELD, HEADER, Asked, SignedOut, check_form, check_origin
from orchestrator.console.compare import evaluations, policies
from orchestrator.console.money import ledger, overview
from orchestrator.console.oidc import sign_in
from orchestrator.console.operator import reconciliations, tenants, workers
from orchestrator.console.pages import HOME, respond, serve_static
from orchestrator.console.webhooks import endpoints
from posology.budget.tenants.store import refused

Handler = Callable[[Asked], Awaitable[Response]]


class For(Enum):
    """Visitors who may see a page."""

    #: anyone who reaches it
    ALL = auto()
    #: a tenant, or an operator where the page says so
    SIGNED = auto()
    #: an operator
    OPERATOR = auto()


def _route(
    path: str,
    handler: Handler,
    method: str = "GET",
    *,
    who: For = For.SIGNED,
    upload: bool = False,
) -> Route:
    """Return a route whose every failure is a page.

    Args:
        path: below the console's.
        handler: makes the response.
        method: ``GET``, or ``POST`` for what changes something.
        who: who may see it.
        upload: whether the body is a file, and its form's token a header.
    """

    async def endpoint(request: Request) -> Response:
        request.scope["route"] = route
        api = request.app.state.context
        assert isinstance(api, Context)
        try:
            asked = await _asked(request, api, who)
            if method == "POST":
                if upload:
                    check_form(asked, request.headers.get(HEADER))
                else:
                    form = await access.read_form(request)
                    check_form(asked, form.get(FIELD))
                    asked = replace(asked, form=form)
            return await handler(asked)
        except SignedOut:
            return problems.of_error(refused()) if upload else access.to_sign_in(request)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - a page for each kind, and a log line for a defect
            # the script of an upload reads problems
            return problems.of_exception(error) if upload else await failure(request, api, error)

    route = Route(f"{HOME}{path}", endpoint, methods=[method])
    return route


async def failure(request: Request, api: Context, error: Exception) -> Response:
    """Return the page of an error, with the status and the words that the API has for it."""
    problem = problems.of_exception(error)
    found = json.loads(bytes(problem.body))
    signed = None
    try:
        signed = await access.stranger(request, api)
    except Exception:  # noqa: BLE001 - the error at hand is the one to show
        signed = None
    if signed is None:
        return respond(
            "error.html", problem.status_code, problem=found, who=None, here="", form_token=""
        )
    return signed.page("error.html", problem.status_code, problem=found)


async def _asked(request: Request, api: Context, who: For) -> Asked:
    if request.method == "POST":
        check_origin(request)
    if who is For.ALL:
        return await access.stranger(request, api)
    asked = await access.visitor(request, api)
    if who is For.OPERATOR and not asked.operator:
        raise problems.RequestProblem(
            403, "NotOperator", "This page belongs to operators",
            "sign in with the key of POSOLOGY_CONSOLE_KEY",
        )  # fmt: skip
    return asked


async def _home(asked: Asked) -> Response:
    """Go to the first page of a visitor."""
    return access.redirect(f"{HOME}/{'ask' if asked.tenant else 'tenants'}")


async def _missing(_: Asked) -> Response:
    """Refuse an address that the console does not have."""
    raise problems.RequestProblem(
        404, "NotFound", "There is no such page", "follow the links at the top of this page"
    )


#: outside the OpenAPI document
ROUTES = (
    Route(f"{HOME}/static/{{digest}}/{{name}}", serve_static, methods=["GET"]),
    _route("", _home),
    _route("/sign-in", access.show_sign_in, who=For.ALL),
    _route("/sign-in", access.sign_in, "POST", who=For.ALL),
    _route("/sign-out", access.sign_out, "POST"),
    _route("/oidc/start", sign_in.started, who=For.ALL),
    _route("/oidc/return", sign_in.returned, who=For.ALL),
    _route("/jobs", jobs.listed),
    _route("/jobs/{job}", jobs.shown),
    _route("/jobs/{job}/events", jobs.events),
    _route("/jobs/{job}/cancel", jobs.cancelled, "POST"),
    _route("/jobs/{job}/retry", jobs.retried, "POST"),
    _route("/jobs/{job}/export/{form}", jobs.exported),
    _route("/jobs/{job}/replay", jobs.replayed),
    _route("/ask", ask.shown),
    _route("/ask", ask.submitted, "POST"),
    _route("/ask/estimate", ask.estimated, "POST"),
    _route("/batches", batches.listed),
    _route("/batches/upload", batches.uploaded, "POST", upload=True),
    _route("/batches/{batch}", batches.shown),
    _route("/batches/{batch}/cancel", batches.cancelled, "POST"),
    _route("/batches/{batch}/download/{form}", batches.downloaded),
    _route("/money", overview.shown),
    _route("/money/ledger", ledger.shown),
    _route("/money/ledger/audit", ledger.audited, "POST"),
    _route("/literature", literature.shown),
    _route("/literature/contents", literature.contents),
    _route("/literature/changed", literature.changed),
    _route("/literature/passages/{passage:path}", literature.passage),
    _route("/compare", policies.shown),
    _route("/compare", policies.compared, "POST"),
    _route("/compare/{run}", evaluations.shown, who=For.OPERATOR),
    _route("/compare/{run}/figures/{figure}", evaluations.figure, who=For.OPERATOR),
    _route("/watches", watches.listed),
    _route("/watches/{watch}", watches.shown),
    _route("/watches/{watch}/turn", watches.turned, "POST"),
    _route("/webhooks", endpoints.listed),
    _route("/webhooks", endpoints.created, "POST"),
    _route("/webhooks/{webhook}", endpoints.shown),
    _route("/webhooks/{webhook}/rotate", endpoints.rotated, "POST"),
    _route("/webhooks/{webhook}/test", endpoints.tested, "POST"),
    _route("/webhooks/{webhook}/redeliver", endpoints.sent_again, "POST"),
    _route("/webhooks/{webhook}/switch", endpoints.switched, "POST"),
    _route("/webhooks/{webhook}/remove", endpoints.removed, "POST"),
    _route("/tenants", tenants.listed, who=For.OPERATOR),
    _route("/tenants", tenants.created, "POST", who=For.OPERATOR),
    _route("/tenants/{tenant}", tenants.shown, who=For.OPERATOR),
    _route("/tenants/{tenant}/limits", tenants.limited, "POST", who=For.OPERATOR),
    _route("/tenants/{tenant}/rotate", tenants.rotated, "POST", who=For.OPERATOR),
    _route("/tenants/{tenant}/revoke", tenants.revoked, "POST", who=For.OPERATOR),
    _route("/tenants/{tenant}/switch", tenants.switched, "POST", who=For.OPERATOR),
    _route("/tenants/{tenant}/audit", tenants.audited, "POST", who=For.OPERATOR),
    _route("/reconciliations", reconciliations.listed, who=For.OPERATOR),
    _route("/reconciliations/{report}", reconciliations.shown, who=For.OPERATOR),
    _route("/workers", workers.shown, who=For.OPERATOR),
    _route("/{rest:path}", _missing, who=For.ALL),
)
