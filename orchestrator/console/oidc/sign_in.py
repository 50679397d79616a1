"""The sign-in by a provider: to it, and back from it.

A cookie binds the way there and back to one browser. State, nonce and PKCE's verifier are derived from it and the client's
secret, so that nothing is stored before the provider has said who comes.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from starlette.responses import RedirectResponse, Response

from orchestrator.api.problems import RequestProblem
from orchestrator.api.traffic import address
from orchestrator.console import access
from orchestrator.console.access import Asked
from orchestrator.console.pages import HEADERS, HOME, respond
from orchestrator.console.sessions import Session, TooManySignIns, new_token
from orchestrator.oidc.options import Rights, Trip, refused
from posology.errors import KeyRefused, TenantDisabled

if TYPE_CHECKING:
    from orchestrator.oidc.provider import Provider

COOKIE = "posology_oidc"
#: where the cookie is sent to
PATH = f"{HOME}/oidc"
#: seconds for the sign-in at the provider
SECONDS = 600
#: stands for operators where a tenant may be chosen; no tenant has that name
OPERATOR = "*"
#: maximum characters of the page that was asked for
_LONGEST = 1_000


async def started(asked: Asked) -> Response:
    """Send the browser to the provider."""
    given = asked.request.query_params
    to = access.within(given.get("to"))
    parts = (given.get("tenant", "")[:64], to if len(to) <= _LONGEST else HOME)
    cookie = ":".join((str(int(time.time())), new_token(), *(quote(one, safe="") for one in parts)))
    at = await _provider(asked).sign_in_address(_trip(asked, cookie))
    response = RedirectResponse(at, 303, dict(HEADERS))
    # a provider's redirection comes from another site: a strict cookie would not be sent
    response.set_cookie(COOKIE, cookie, max_age=SECONDS, path=PATH, secure=access.over_tls(asked), httponly=True, samesite="lax")  # fmt: skip
    return response


async def returned(asked: Asked) -> Response:
    """Begin a session for a person that the provider sends back, or show the tenants to choose from."""
    provider, cookie = _provider(asked), asked.request.cookies.get(COOKIE, "")
    try:
        async with access.sessions(asked.api).trying(address(asked.request.scope) or "unknown"):
            rights = await _proven(asked, provider, cookie)
    except TooManySignIns:
        response = access.too_many(asked, HOME)
    except KeyRefused:
        failed = "The sign-in is not accepted, or took too long: try again."
        response = asked.page("sign_in.html", 401, to=HOME, failed=failed)
    else:
        wanted, to = map(unquote, cookie.split(":")[2:])
        owners = [*rights.tenants, *([OPERATOR] if rights.operator else [])]
        response = await _entered(asked, [one for one in owners if wanted in ("", one)], to)
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="lax")
    return response


async def _proven(asked: Asked, provider: Provider, cookie: str) -> Rights:
    """Return the rights of the person who comes back.

    Raises:
        KeyRefused: the return is not of this browser, is repeated, or comes too late, or the provider did not sign.
        RequestProblem: the provider cannot be reached.
    """
    given, trip = asked.request.query_params, _trip(asked, cookie)
    state = given.get("state", "").encode(errors="replace")
    # the state proves that the cookie is as it was made, and so its time
    if not (hmac.compare_digest(state, trip.state.encode()) and cookie):
        raise refused()
    if time.time() - int(cookie.partition(":")[0]) > SECONDS:
        raise refused()
    if given.get("iss") not in (None, provider.options.issuer) or "code" not in given:
        raise refused()
    if not await access.sessions(asked.api).first(trip.state, seconds=SECONDS):
        raise refused()
    claims = await provider.person(given["code"], trip)
    return provider.options.rights(claims)


async def _entered(asked: Asked, owners: list[str], to: str) -> Response:
    """Begin a session, for whom there is only one, under a new token.

    A page leads on, since a redirection that began at another site has no strict cookie.
    """
    if len(owners) > 1:
        return asked.page("choose_tenant.html", owners=owners, operator=OPERATOR, to=to)
    if not owners:
        raise RequestProblem(
            403, "NoGroup", "Your account may not use this service",
            "none of its groups stands for a tenant here: ask the operator of this service",
        )  # fmt: skip
    tenant = None if owners == [OPERATOR] else owners[0]
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


def _trip(asked: Asked, cookie: str) -> Trip:
    secret, url = _provider(asked).options.secret.encode(), asked.request.url
    scheme = "https" if access.over_tls(asked) else url.scheme
    derived = {
        name: hmac.new(secret, f"{name} {cookie}".encode(errors="replace"), hashlib.sha256).hexdigest()
        for name in ("state", "nonce", "verifier")
    }  # fmt: skip
    return Trip(back=f"{scheme}://{url.netloc}{PATH}/return", **derived)
