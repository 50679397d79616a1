"""A provider of OpenID Connect: its addresses and keys, and the tokens that it signed.

OpenID Connect Core 1.0, section 3.1 (the code flow) and Discovery 1.0; RFC 7636 (PKCE); RFC 8725 (JWT best practices);
RFC 9068 (access tokens).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
from authlib.integrations.httpx_client.oauth2_client import OAuth2ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from orchestrator.api.problems import RequestProblem
from orchestrator.oidc.options import Options, Trip, is_safe, refused
from posology.budget.tenants import api_keys
from posology.network.clients import http_client

_log = logging.getLogger("posology.oidc")
#: signatures by the provider's private key; never `none`, and no secret that both know
ALGORITHMS = ("RS256", "ES256", "PS256")
#: seconds by which clocks may differ
LEEWAY = 60
#: seconds after which addresses and keys are fetched again, and after which old ones count no longer
FRESH, KEPT = 3_600.0, 86_400.0
#: seconds between two fetches, whatever tokens name: unknown keys ask the provider no more often
PAUSE = 30.0
#: seconds and bytes of one reply of the provider
_SECONDS, _BYTES = 10.0, 1024 * 1024
#: claims that ID tokens have and access tokens lack
_OF_ID_TOKENS = frozenset({"nonce", "at_hash", "c_hash", "s_hash"})
#: ways to show the client's secret; the first one is every provider's default
_METHODS = ("client_secret_basic", "client_secret_post")
_ADDRESSES = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """The discovery document and the keys."""

    document: Mapping[str, Any]
    keys: KeySet
    #: when they were fetched
    at: float


class Provider:
    """The provider of a service, shared by its requests.

    Args:
        options: how to reach it.
        clock: seconds; for tests.
    """

    def __init__(self, options: Options, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options
        self._clock = clock
        self._lock = anyio.Lock()
        self._known: _Known | None = None
        #: of the last fetch: when it began, and whether it failed
        self._tried, self._failed = float("-inf"), False

    @staticmethod
    def is_token(text: str) -> bool:
        """Return whether a bearer token has the form of a signed JWT; others are API keys, or nothing."""
        return text.count(".") == 2 and not text.startswith(api_keys.START)

    async def sign_in_address(self, trip: Trip) -> str:
        """Return the address at the provider where a person signs in.

        Raises:
            RequestProblem: the provider cannot be reached.
        """
        document = (await self._found()).document
        supported = document.get("scopes_supported")
        # some providers list groups only where this scope asks for them, and others refuse scopes that they do not know
        more = [self.options.claim] if self.options.claim in (supported or ()) else []
        address = prepare_grant_uri(
            document["authorization_endpoint"],
            client_id=self.options.client,
            response_type="code",
            redirect_uri=trip.back,
            scope=["openid", "profile", *more],
            state=trip.state,
            nonce=trip.nonce,
            code_challenge=create_s256_code_challenge(trip.verifier),
            code_challenge_method="S256",
        )
        return str(address)

    async def person(self, code: str, trip: Trip) -> dict[str, Any]:
        """Return the claims of the ID token for which the provider takes a code, once.

        Raises:
            KeyRefused: the code or the ID token is not accepted.
            RequestProblem: the provider cannot be reached.
        """
        document = (await self._found()).document
        methods = document.get("token_endpoint_auth_methods_supported") or ()
        method = next((one for one in _METHODS if one in methods), None)
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": trip.back, "code_verifier": trip.verifier}  # fmt: skip
        auth = OAuth2ClientAuth(self.options.client, self.options.secret, method)
        try:
            reply = await _reply("POST", document["token_endpoint"], data=form, auth=auth)
        except (httpx2.HTTPError, TimeoutError, ValueError) as error:
            raise _unreachable(error) from None
        token = reply.get("id_token")
        if not isinstance(token, str):
            # such as a code that has been used; the reply says no more than that
            raise refused()
        signed = await self._signed(token)
        expected = {"iss": {"value": self.options.issuer}, "aud": {"value": self.options.client}}
        values = {"nonce": trip.nonce, "client_id": self.options.client, "access_token": reply.get("access_token")}  # fmt: skip
        claims = CodeIDToken(signed.claims, signed.header, expected, values)
        try:
            claims.validate(leeway=LEEWAY)
        except Exception as error:  # noqa: BLE001 - the claims may have any shape
            raise refused(error) from None
        return signed.claims

    async def program(self, token: str) -> dict[str, Any]:
        """Return the claims of an access token.

        Raises:
            KeyRefused: it is not accepted.
            RequestProblem: the provider cannot be reached, and the token's key is unknown.
        """
        signed = await self._signed(token)
        needed = {name: {"essential": True} for name in ("sub", "exp", "iat")}
        issuer = {"essential": True, "value": self.options.issuer}
        audience = {"essential": True, "value": self.options.audience}
        registry = jwt.JWTClaimsRegistry(leeway=LEEWAY, iss=issuer, aud=audience, **needed)  # type: ignore[arg-type]  # a TypedDict
        try:
            registry.validate(signed.claims)
        except Exception as error:  # noqa: BLE001 - the claims may have any shape
            raise refused(error) from None
        if not _is_access(signed):
            raise refused()
        return signed.claims

    async def _signed(self, token: str) -> jwt.Token:
        """Return a token that the provider signed, by a key that it publishes: none that the token itself names."""
        registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        known = await self._found()
        try:
            try:
                return jwt.decode(token, known.keys, registry=registry)
            except InvalidKeyIdError:
                known = await self._found(unknown=True)
                return jwt.decode(token, known.keys, registry=registry)
        except RequestProblem:
            raise
        except Exception as error:  # noqa: BLE001 - a token is any text, and one that cannot be read is refused
            raise refused(error) from None

    async def _found(self, *, unknown: bool = False) -> _Known:
        """Return addresses and keys, fetched again if they are old.

        Args:
            unknown: whether a token names a key that is not among them; they are fetched again if that is not too often.

        Raises:
            RequestProblem: they are not known, and the provider cannot be reached.
        """
        known = self._usable()
        fresh = known is not None and self._clock() - known.at < FRESH
        # while one request fetches, others go on with what is known
        if known is not None and not unknown and (fresh or self._lock.locked()):
            return known
        async with self._lock:
            known, now = self._usable(), self._clock()
            if (known is None or unknown or now - known.at >= FRESH) and now - self._tried >= PAUSE:
                self._tried, self._failed = now, True
                try:
                    known = self._known = await self._fetched()
                    self._failed = False
                except (httpx2.HTTPError, TimeoutError, ValueError) as error:
                    _log.warning("the OpenID Connect provider cannot be used: %s", error)
        if known is None or (unknown and self._failed):
            raise _unreachable()
        return known

    def _usable(self) -> _Known | None:
        known = self._known
        return known if known is not None and self._clock() - known.at < KEPT else None

    async def _fetched(self) -> _Known:
        """Fetch addresses and keys.

        Raises:
            ValueError: a reply is no such document.
            HTTPError: a request failed.
            TimeoutError: a request took too long.
        """
        issuer = self.options.issuer
        document = await _reply("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != issuer:
            raise ValueError("its discovery document names another issuer")
        for name in _ADDRESSES:
            # a provider elsewhere sends no request to services of this machine
            if not is_safe(document.get(name), local=issuer.startswith("http:")):
                raise ValueError(f"{name} in its discovery document is no https:// address")
        listed = await _reply("GET", document["jwks_uri"])
        try:
            keys = KeySet.import_key_set(listed)  # type: ignore[arg-type]  # checked by joserfc
        except Exception as error:  # noqa: BLE001 - keys of any shape
            raise ValueError(f"its keys cannot be read: {type(error).__name__}") from None
        return _Known(document=document, keys=keys, at=self._clock())


def _unreachable(error: Exception | None = None) -> RequestProblem:
    if error is not None:
        _log.warning("the OpenID Connect provider failed: %s", error)
    return RequestProblem(
        503, "ProviderUnavailable", "The sign-in provider is unavailable",
        "the provider of OpenID Connect cannot be reached: try again, or use an API key",
    )  # fmt: skip


def _is_access(token: jwt.Token) -> bool:
    """Return whether a token is for use at an API: it says so (RFC 9068), or has a scope and no claim of ID tokens."""
    if str(token.header.get("typ", "")).lower().removeprefix("application/") == "at+jwt":
        return True
    claims = token.claims.keys()
    return bool({"scope", "scp"} & claims) and not (_OF_ID_TOKENS & claims)


async def _reply(method: str, url: str, **options: Any) -> dict[str, Any]:
    """Return a JSON object from the provider; redirects are not followed.

    Raises:
        ValueError: it is none, or too large.
        HTTPError: the request failed.
        TimeoutError: it took too long.
    """
    body = bytearray()
    with anyio.fail_after(_SECONDS):
        async with (
            http_client(url, timeout=_SECONDS) as http,
            http.stream(method, url, headers={"Accept": "application/json"}, **options) as reply,
        ):
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > _BYTES:
                    raise ValueError("its reply is too large")
    # an OAuth error of a code is a reply, too
    if reply.status_code not in (200, 400):
        raise ValueError(f"it replied with status {reply.status_code}")
    read = json.loads(bytes(body))
    if not isinstance(read, dict):
        raise ValueError("its reply is no JSON object")
    return read
