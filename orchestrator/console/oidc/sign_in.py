"""The sign-in by a provider: to it, back from it, and the choice among several tenants.

A cookie binds the way there and back to one browser. State, nonce and PKCE's verifier are derived from it and the client's
secret, so that nothing is stored before the provider has said who comes.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from starlette.responses import RedirectResponse, Response

from orchestrator.api.problems import RequestProblem
from orchestrator.api.traffic import address
from orchestrator.console import access
from orchestrator.console.access import Asked
from orchestrator.console.pages import HEADERS, HOME, respond
from orchestrator.console.sessions import Choice, Session, TooManySignIns, new_token
from orchestrator.oidc.options import refused
from posology.errors import KeyRefused, TenantDisabled

if TYPE_CHECKING:
    from orchestrator.oidc.provider import Provider

COOKIE = "posology_oidc"
#: where the cookie is sent to
PATH = f"{HOME}/oidc"
#: seconds for the sign-in at the provider, and for a choice
SECONDS = 600
#: maximum characters of a page's address in the cookie
_LONGEST = 1_000


async def started(asked: Asked) -> Response:
    """Send the browser to the provider."""
    provider = _provider(asked)
    to = quote(access.within(asked.request.query_params.get("to")), safe="")
    cookie = f"{int(time.time())}.{new_token()}.{to if len(to) <= _LONGEST else HOME}"
    at = await provider.sign_in_address(
        back=_back(asked),
        state=_derived(provider, cookie, "state"),
        nonce=_derived(provider, cookie, "nonce"),
        verifier=_derived(provider, cookie, "verifier"),
    )
    response = RedirectResponse(at, 303, dict(HEADERS))
    # a provider's redirection comes from another site: a strict cookie would not be sent
    response.set_cookie(COOKIE, cookie, max_age=SECONDS, path=PATH, secure=access.over_tls(asked), httponly=True, samesite="lax")  # fmt: skip
    return response


async def returned(asked: Asked) -> Response:
    """Begin a session for a person that the provider sends back."""
    provider, store = _provider(asked), access.sessions(asked.api)
    try:
        async with store.trying(address(asked.request.scope) or "unknown"):
            choice = await _proven(asked, provider)
    except TooManySignIns:
        response = access.too_many(asked, HOME)
    except KeyRefused:
        failed = "The sign-in is not accepted, or took too long: try again."
        response = asked.page("sign_in.html", 401, to=HOME, failed=failed)
    else:
        if len(choice.tenants) + choice.operator > 1:
            # a token of its own: one that the browser sent may be known to someone else
            fresh = replace(asked, token=await store.offer(choice, seconds=SECONDS))
            response = fresh.page("choose_tenant.html", choice=choice)
        else:
            response = await _begun(asked, next(iter(choice.tenants), None), choice.to)
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="lax")
    return response


async def chosen(asked: Asked) -> Response:
    """Begin a session for one of several tenants."""
    choice = await access.sessions(asked.api).choice(asked.token)
    tenant = None if "operator" in asked.form else asked.form.get("tenant", "")
    if choice is None or not (choice.operator if tenant is None else tenant in choice.tenants):
        raise RequestProblem(
            403, "ChoiceRefused", "The choice has ended", "sign in again, and choose within ten minutes"
        )  # fmt: skip
    return await _begun(asked, tenant, choice.to)


async def _proven(asked: Asked, provider: Provider) -> Choice:
    """Return the sessions that a person may begin.

    Raises:
        KeyRefused: the return is not of this browser, is repeated, or comes too late, or the provider did not sign.
        RequestProblem: no group of the person stands for anything here, or the provider cannot be reached.
    """
    given, cookie = asked.request.query_params, asked.request.cookies.get(COOKIE, "")
    at, _, rest = cookie.partition(".")
    state = _derived(provider, cookie, "state")
    known = hmac.compare_digest(given.get("state", "").encode(errors="replace"), state.encode())
    # the state proves that the cookie is as it was made, and so its time
    if not (known and rest and time.time() - int(at) <= SECONDS):
        raise refused()
    if given.get("iss") not in (None, provider.options.issuer) or "code" not in given:
        raise refused()
    if not await access.sessions(asked.api).first(state, seconds=SECONDS):
        raise refused()
    claims = await provider.person(
        given["code"],
        back=_back(asked),
        nonce=_derived(provider, cookie, "nonce"),
        verifier=_derived(provider, cookie, "verifier"),
    )
    rights = provider.options.rights(claims)
    if not rights.tenants and not rights.operator:
        raise RequestProblem(
            403, "NoGroup", "Your account may not use this service",
            "none of its groups stands for a tenant here: ask the operator of this service",
        )  # fmt: skip
    to = access.within(unquote(rest.partition(".")[2]))
    return Choice(tenants=rights.tenants, operator=rights.operator, to=to)


async def _begun(asked: Asked, tenant: str | None, to: str) -> Response:
    """Begin a session under a new token; the page leads on, since a redirection of another site has no strict cookie."""
    if tenant is not None:
        try:
            await asked.api.tenants().admit(tenant)
        except (KeyRefused, TenantDisabled) as error:
            raise RequestProblem(403, "NoTenant", "The tenant is not open", error.message) from None
    store = access.sessions(asked.api)
    await store.end(asked.token)
    session = Session(tenant=tenant, key=_provider(asked).options.key)
    response = respond("signed_in.html", to=to, who=None, here="", form_token="")
    access.keep(response, asked, await store.begin(session))
    return response


def _provider(asked: Asked) -> Provider:
    if asked.api.oidc is None:
        raise RequestProblem(
            404, "NotFound", "There is no such page", "this service has no sign-in provider: use a key"
        )  # fmt: skip
    return asked.api.oidc


def _back(asked: Asked) -> str:
    """Return the address to come back to; the provider knows the right ones."""
    url = asked.request.url
    return f"{'https' if access.over_tls(asked) else url.scheme}://{url.netloc}{PATH}/return"


def _derived(provider: Provider, cookie: str, purpose: str) -> str:
    text = f"posology {purpose} {cookie}".encode(errors="replace")
    return hmac.new(provider.options.secret.encode(), text, hashlib.sha256).hexdigest()
