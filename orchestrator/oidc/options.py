"""The options of OpenID Connect, and the rights that groups give."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from orchestrator.settings import Auth, Settings
from posology.errors import ConfigurationError, InvalidQuery, KeyRefused
from posology.network.hosts import is_address, is_loopback
from posology.store import keys

_log = logging.getLogger("posology.oidc")
#: start of :attr:`Options.key`, which no API key's id has
START = "oidc:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rights:
    """Tenants that a person or program may act for."""

    #: names, sorted
    tenants: tuple[str, ...]
    #: whether the console's pages of operators are open, too
    operator: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Trip:
    """A person's way to the provider and back."""

    #: address of this service to come back to; the provider knows the right ones
    back: str
    #: comes back with the person
    state: str = field(repr=False)
    #: comes back in the ID token
    nonce: str = field(repr=False)
    #: secret of PKCE
    verifier: str = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """A provider, this service's client there, and the meaning of its groups."""

    issuer: str
    client: str
    secret: str = field(repr=False)
    #: that access tokens must have
    audience: str
    #: claim that lists the groups
    claim: str
    #: names of tenants by group
    tenants: Mapping[str, Collection[str]]
    #: groups of operators
    operators: Collection[str]
    #: stands for an API key in sessions: they end when these options change
    key: str

    @property
    def name(self) -> str:
        """Host of the provider, as its name on pages."""
        return urlsplit(self.issuer).hostname or self.issuer

    def rights(self, claims: Mapping[str, Any]) -> Rights:
        """Return the rights that the groups of a validated token give."""
        listed = claims.get(self.claim)
        named = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
        groups = {one for one in named if isinstance(one, str)}
        tenants = {name for group in groups for name in self.tenants.get(group, ())}
        return Rights(
            tenants=tuple(sorted(tenants)), operator=not groups.isdisjoint(self.operators)
        )


def options_of(settings: Settings) -> Options | None:
    """Return the options that settings name; ``None``: none.

    Raises:
        ConfigurationError: they are incomplete or invalid; the error names the variable.
    """
    issuer, client, secret = (
        settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret
    )  # fmt: skip
    more = (settings.oidc_audience, settings.oidc_groups, settings.oidc_operators)
    if not any((issuer, client, secret, *more)):
        return None
    if not (issuer and client and secret):
        raise ConfigurationError(
            "OpenID Connect needs POSOLOGY_OIDC_ISSUER, POSOLOGY_OIDC_CLIENT_ID and POSOLOGY_OIDC_CLIENT_SECRET: set "
            "all three, or none"
        )
    if settings.auth is not Auth.KEYS:
        raise ConfigurationError("POSOLOGY_OIDC_ISSUER needs POSOLOGY_AUTH=keys")
    if not is_safe(issuer) or urlsplit(issuer).query:
        raise ConfigurationError(
            "POSOLOGY_OIDC_ISSUER must be an https:// address without user, query and fragment; http:// is for this "
            "machine alone"
        )
    tenants, operators = _tenants(settings.oidc_groups), _parts(settings.oidc_operators)
    if not tenants and not operators:
        raise ConfigurationError(
            "OpenID Connect lets no one in: set POSOLOGY_OIDC_GROUPS or POSOLOGY_OIDC_OPERATORS"
        )
    meaning = repr((issuer, client, settings.oidc_claim, sorted(tenants.items()), operators))
    return Options(
        issuer=issuer,
        client=client,
        secret=secret.get_secret_value(),
        audience=settings.oidc_audience or client,
        claim=settings.oidc_claim,
        tenants=tenants,
        operators=operators,
        key=START + hashlib.sha256(meaning.encode()).hexdigest(),
    )


def is_safe(url: object, *, local: bool = True) -> bool:
    """Return whether secrets may be sent to an address: https, or this machine.

    Args:
        url: the address.
        local: whether http to this machine is safe.
    """
    if not isinstance(url, str) or not is_address(url):
        return False
    parts = urlsplit(url)
    safe = parts.scheme == "https" or (local and parts.scheme == "http" and is_loopback(url))
    return safe and "@" not in parts.netloc and not parts.fragment


def refused(error: Exception | None = None) -> KeyRefused:
    """Return one error for every token that is not accepted; the log has the kind of the cause."""
    _log.info("a token was refused: %s", "no such token" if error is None else type(error).__name__)
    return KeyRefused("the token is not accepted: it is invalid or has ended; get a new one")


def _tenants(text: str) -> Mapping[str, list[str]]:
    tenants = defaultdict(list)
    for part in _parts(text):
        # names of groups may have the sign, as those of LDAP do
        group, _, tenant = (one.strip() for one in part.rpartition("="))
        try:
            keys.prefix(tenant)
        except InvalidQuery as error:
            raise ConfigurationError(f"POSOLOGY_OIDC_GROUPS: {error.message}") from None
        if not group:
            raise ConfigurationError(f"POSOLOGY_OIDC_GROUPS: write group=tenant (got {part!r})")
        tenants[group].append(tenant)
    return dict(tenants)


def _parts(text: str) -> list[str]:
    return [part for one in text.split(",") if (part := one.strip())]
