"""A provider of OpenID Connect on this machine, which signs what a test says."""

from __future__ import annotations

import hashlib
import time
from base64 import b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from joserfc.jws import JWSRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CLIENT, SECRET, AUDIENCE = "posology-client", "the-clients-secret", "posology-api"
Key = RSAKey | ECKey | OctKey


@cache
def rsa(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid})


@cache
def ec(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid})


@dataclass(kw_only=True, slots=True)
class Stub:
    """The provider; tests change it while it serves."""

    issuer: str = ""
    #: keys that it publishes
    keys: list[Key] = field(default_factory=lambda: [rsa("one"), ec("two")])
    #: groups of the person who signs in
    groups: object = field(default_factory=list)
    #: changes of the discovery document and of ID tokens; ``None`` removes
    document: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    #: status of every reply; 0: as it should be
    down: int = 0
    #: whether codes count more than once
    lax: bool = False
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    #: requests by path
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "POSOLOGY_OIDC_ISSUER": self.issuer,
            "POSOLOGY_OIDC_CLIENT_ID": CLIENT,
            "POSOLOGY_OIDC_CLIENT_SECRET": SECRET,
            "POSOLOGY_OIDC_AUDIENCE": AUDIENCE,
        }

    @property
    def app(self) -> Starlette:
        paths = {"/.well-known/openid-configuration": self._document, "/jwks": self._keys, "/token": self._token,
                 "/moved": self._moved, "/authorize": self._authorize}  # fmt: skip
        return Starlette(
            routes=[Route(path, _counted(self, path, one), methods=["GET", "POST"]) for path, one in paths.items()]
        )  # fmt: skip

    def sign(self, claims: Mapping[str, Any], key: Key | None = None, **header: Any) -> str:
        key = key or rsa("one")
        head = {"alg": "ES256" if isinstance(key, ECKey) else "RS256", "kid": key.kid, **header}
        registry = JWSRegistry(algorithms=list(JWSRegistry.algorithms), strict_check_header=False)
        return jwt.encode({k: v for k, v in head.items() if v is not None}, _without(claims), key, registry=registry)  # fmt: skip

    def access(self, *, key: Key | None = None, header: Mapping[str, Any] | None = None, **changes: Any) -> str:  # fmt: skip
        """An access token as RFC 9068 has it."""
        claims = {**self._usual(AUDIENCE), "scope": "ask", "client_id": "a-program", **changes}
        return self.sign(claims, key, **{"typ": "at+jwt", **(header or {})})

    def identity(self, nonce: str | None, **changes: Any) -> str:
        return self.sign({**self._usual(CLIENT), "nonce": nonce, **self.claims, **changes})

    def visit(self, address: str) -> str:
        """Sign in at the address to which a browser was sent, and return where it is sent then."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.issuer}/authorize?")
        assert given["response_type"] == "code"
        assert given["code_challenge_method"] == "S256"
        assert given["client_id"] == CLIENT
        assert "openid" in given["scope"].split()
        code = f"code{len(self.codes)}"
        self.codes[code] = given
        return f"{given['redirect_uri']}?{urlencode({'code': code, 'state': given['state']})}"

    def _usual(self, audience: str) -> dict[str, Any]:
        now = int(time.time())
        return {"iss": self.issuer, "sub": "someone", "aud": audience, "iat": now, "exp": now + 300, "groups": self.groups}  # fmt: skip

    def _document(self, _: Request, __: dict[str, str]) -> Response:
        usual = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            # what it says of algorithms does not count
            "id_token_signing_alg_values_supported": ["none", "HS256", "RS256"],
        }
        return JSONResponse(_without({**usual, **self.document}))

    def _keys(self, _: Request, __: dict[str, str]) -> Response:
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self.keys]})

    def _moved(self, _: Request, __: dict[str, str]) -> Response:
        return Response(status_code=302, headers={"Location": f"{self.issuer}/jwks"})

    def _authorize(self, request: Request, _: dict[str, str]) -> Response:
        """Sign everyone in at once, as a provider does that knows the browser."""
        return Response(status_code=302, headers={"Location": self.visit(str(request.url))})

    def _token(self, request: Request, form: dict[str, str]) -> Response:
        basic = request.headers.get("authorization", "").removeprefix("Basic ")
        posted = f"{form.get('client_id')}:{form.get('client_secret')}"
        login = b64decode(basic).decode() if basic else posted
        made = self.codes.get(form["code"]) if self.lax else self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        if made is None or login != f"{CLIENT}:{SECRET}" or form["redirect_uri"] != made["redirect_uri"] or challenge != made["code_challenge"]:  # fmt: skip
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(
            {"access_token": "opaque", "token_type": "Bearer", "id_token": self.identity(made["nonce"])}
        )  # fmt: skip


def _counted(stub: Stub, path: str, serve: Any) -> Any:
    async def endpoint(request: Request) -> Response:
        stub.asked[path] += 1
        if stub.down:
            return Response(status_code=stub.down)
        form = parse_qs((await request.body()).decode())
        reply: Response = serve(request, {name: values[0] for name, values in form.items()})
        return reply

    return endpoint


def _without(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
