"""Access to pages: of a tenant, an operator, or the only user of an API without keys."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orchestrator.api.bodies import check_type, chunks
from orchestrator.api.context import Context
from orchestrator.api.origins import is_foreign, is_local
from orchestrator.api.problems import RequestProblem
from orchestrator.api.traffic import TENANT, address
from orchestrator.console.pages import HEADERS, HOME, respond
from orchestrator.console.sessions import (
    LENGTH,
    WINDOW,
    Session,
    Sessions,
    TooManySignIns,
    form_token,
    new_token,
)
from orchestrator.oidc.options import START
from orchestrator.settings import Auth
from posology.budget.tenants import api_keys
from posology.errors import KeyRefused, PosologyError, TenantDisabled
from posology.network.hosts import is_own_host
from posology.store.keys import DEFAULT_TENANT

COOKIE = "posology_console"
#: path of the form that signs in
SIGN_IN = f"{HOME}/sign-in"
#: field of a form, and header, with the form's token
FIELD, HEADER = "form_token", "X-Form-Token"
#: maximum bytes of a form
_BYTES = 1024 * 1024
#: maximum fields of a form
_FIELDS = 100


class SignedOut(Exception):
    """The visitor is not signed in, or the session or its key has ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A request for a page, and who makes it."""

    request: Request
    api: Context
    #: token of the cookie
    token: str
    #: tenant whose data is shown; ``None``: none: an operator, or a visitor who is not signed in
    tenant: str | None = None
    #: whether the pages of operators are shown
    operator: bool = False
    #: whether the visitor has signed in, and so can sign out
    signed: bool = False
    #: fields of the form; empty: none was sent
    form: Mapping[str, str]

    @property
    def own(self) -> str:
        """The tenant.

        Raises:
            RequestProblem: an operator has none.
        """
        if self.tenant is None:
            raise RequestProblem(
                403, "NoTenant", "This page belongs to a tenant",
                "you are signed in as operator: sign in with a tenant's key to see its jobs and money",
            )  # fmt: skip
        return self.tenant

    def page(self, template: str, status: int = 200, **values: object) -> Response:
        """Return a page for this visitor. A cookie that it lacks is set."""
        response = respond(
            template,
            status,
            **values,
            who=self,
            here=self.request.url.path,
            form_token=form_token(self.token),
        )
        if self.request.cookies.get(COOKIE) != self.token:
            keep(response, self, self.token)
        return response


def keep(response: Response, asked: Asked, token: str) -> None:
    """Set the cookie. No script reads it, no other site sends it, and the API's operations do not get it."""
    response.set_cookie(
        COOKIE,
        token,
        max_age=LENGTH,
        path=HOME,
        secure=over_tls(asked),
        httponly=True,
        samesite="strict",
    )


def over_tls(asked: Asked) -> bool:
    """Return whether the browser may send the cookie over TLS alone.

    Behind a proxy that ends TLS, requests come without it, and headers of a proxy that is not known do not count.
    """
    settings, url = asked.api.settings, asked.request.url
    if settings.console_secure is not None:
        return settings.console_secure
    keys = settings.auth is Auth.KEYS and not is_own_host(url.hostname or "")
    return keys or url.scheme == "https"


async def visitor(request: Request, api: Context) -> Asked:
    """Return a request with who makes it. Keys are looked up each time, so that a revoked key ends its sessions.

    Raises:
        SignedOut: the API asks for keys, and no session stands.
        RequestProblem: the API does not ask for keys, and the request comes from another machine.
        StoreUnavailable: Redis is unreachable.
    """
    token = request.cookies.get(COOKIE, "")
    if api.settings.auth is not Auth.KEYS:
        if not is_local(request):
            raise RequestProblem(
                403, "ConsoleClosed", "The console is closed to other machines",
                "an API without keys shows its console to its own machine only: set POSOLOGY_AUTH=keys",
            )  # fmt: skip
        request.scope[TENANT] = DEFAULT_TENANT
        return Asked(
            request=request,
            api=api,
            token=token or new_token(),
            tenant=DEFAULT_TENANT,
            operator=True,
            form={},
        )
    session = await sessions(api).find(token) if token else None
    if session is None or not await _stands(session, api):
        raise SignedOut
    request.scope[TENANT] = session.tenant
    return Asked(
        request=request,
        api=api,
        token=token,
        tenant=session.tenant,
        operator=session.tenant is None,
        signed=True,
        form={},
    )


async def stranger(request: Request, api: Context) -> Asked:
    """Return a request of someone who need not be signed in.

    Raises:
        RequestProblem: as of :func:`visitor`.
    """
    try:
        return await visitor(request, api)
    except (SignedOut, PosologyError):
        token = request.cookies.get(COOKIE) or new_token()
        return Asked(request=request, api=api, token=token, form={})


def check_origin(request: Request) -> None:
    """Refuse requests that pages of other sites make.

    Raises:
        RequestProblem: 403.
    """
    if is_foreign(request.headers, request.headers.get("host", "")):
        raise RequestProblem(
            403, "ForeignOrigin", "The request was made by the page of another site",
            "open the console by its own address",
        )  # fmt: skip


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form; of several values of one field the last.

    Raises:
        RequestProblem: the body is no form, or too large.
    """
    check_type(request, ("application/x-www-form-urlencoded",))
    body = b"".join([chunk async for chunk in chunks(request, limit=_BYTES)])
    try:
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict"
        )
    except ValueError as error:
        raise RequestProblem(
            400, "MalformedBody", "The body cannot be read", f"the body is no form: {error}"
        ) from None
    # forms send the ends of lines as CRLF
    return {name: value.replace("\r\n", "\n") for name, value in fields}


def check_form(asked: Asked, given: str | None) -> None:
    """Check the token of a form.

    Raises:
        RequestProblem: 403.
    """
    if COOKIE not in asked.request.cookies and over_tls(asked):
        raise RequestProblem(
            403, "FormRefused", "The browser sent no cookie",
            "the console's cookie is sent over TLS alone: open the console by https or as localhost, or set "
            "POSOLOGY_CONSOLE_SECURE=false",
        )  # fmt: skip
    if not hmac.compare_digest((given or "").encode(), form_token(asked.token).encode()):
        raise RequestProblem(
            403, "FormRefused", "The form is not from this session",
            "the page is older than this session: open it again, and repeat what you did",
        )  # fmt: skip


def sessions(api: Context) -> Sessions:
    """Return the sessions on the job store's Redis."""
    store = api.jobs()
    return Sessions(store.redis, store.url)


async def show_sign_in(asked: Asked) -> Response:
    """Show the form that signs in; a visitor who is signed in goes on."""
    to = within(asked.request.query_params.get("to"))
    if asked.tenant is not None or asked.operator:
        return redirect(to)
    return asked.page("sign_in.html", to=to, failed=None)


async def sign_in(asked: Asked) -> Response:
    """Begin a session by a tenant's key or the operator's."""
    to = within(asked.form.get("to"))
    store = sessions(asked.api)
    try:
        async with store.trying(address(asked.request.scope) or "unknown"):
            session = await _session(asked.api, asked.form.get("key", "").strip())
    except TooManySignIns:
        return too_many(asked, to)
    except PosologyError as error:
        said = "The key is not accepted." if isinstance(error, KeyRefused) else error.message
        return asked.page("sign_in.html", 401, to=to, failed=said)
    await store.end(asked.token)
    response = redirect(to)
    keep(response, asked, await store.begin(session))
    return response


def too_many(asked: Asked, to: str) -> Response:
    """Return the page for an address from which too many sign-ins have failed."""
    said = f"Too many sign-ins from this address have failed: try again in {WINDOW} seconds."
    response = asked.page("sign_in.html", 429, to=to, failed=said)
    response.headers["Retry-After"] = str(WINDOW)
    return response


async def sign_out(asked: Asked) -> Response:
    """End the session."""
    await sessions(asked.api).end(asked.token)
    response = redirect(SIGN_IN)
    response.delete_cookie(COOKIE, path=HOME, httponly=True, samesite="strict")
    return response


def redirect(to: str) -> Response:
    """Return a redirection within the console."""
    return RedirectResponse(to, 303, dict(HEADERS))


def to_sign_in(request: Request) -> Response:
    """Return the way to the sign-in, and back to a page that was asked for."""
    if request.headers.get("hx-request") == "true":
        # a part of a page cannot show the sign-in
        return Response(status_code=204, headers={**HEADERS, "HX-Redirect": SIGN_IN})
    if request.method != "GET":
        return redirect(SIGN_IN)
    at = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return redirect(f"{SIGN_IN}?{urlencode({'to': at})}")


async def _session(api: Context, key: str) -> Session:
    wanted = api.settings.console_key
    if wanted is not None and hmac.compare_digest(
        key.encode(errors="replace"), wanted.get_secret_value().encode()
    ):
        return Session(tenant=None, key=api_keys.digest(wanted.get_secret_value()))
    tenant = await api.tenants().of_key(key)
    return Session(tenant=tenant, key=api_keys.id_of(key) or "")


async def _stands(session: Session, api: Context) -> bool:
    proven = session.key.startswith(START)
    if proven and (api.oidc is None or session.key != api.oidc.options.key):
        return False
    if session.tenant is None:
        wanted = api.settings.console_key
        return proven or (
            wanted is not None and api_keys.is_key_of(wanted.get_secret_value(), session.key)
        )
    try:
        if proven:
            await api.tenants().admit(session.tenant)
        else:
            await api.tenants().check(session.tenant, session.key)
    except (KeyRefused, TenantDisabled):
        return False
    return True


def within(to: str | None) -> str:
    """Return a path of the console; another address, such as another site's, becomes its first page."""
    try:
        parts = urlsplit(to or "")
    except ValueError:
        # such as an address of IPv6 without its end
        return HOME
    inside = parts.path == HOME or parts.path.startswith(f"{HOME}/")
    if (
        to is None
        or parts.scheme
        or parts.netloc
        or not inside
        or "\\" in to
        or ".." in unquote(parts.path).split("/")
        or not to.isprintable()
    ):
        return HOME
    return to
