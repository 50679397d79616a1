"""OpenID Connect: who signs in, or sends an access token, by the groups of a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.oidc.options import options_of
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.oidc.provider import Provider
    from orchestrator.settings import Settings


def provider_of(settings: Settings) -> Provider | None:
    """Return the provider that settings name; ``None``: API keys alone. It is asked when it is first needed.

    Raises:
        ConfigurationError: the settings are incomplete or invalid, or the packages are not installed.
    """
    options = options_of(settings)
    if options is None:
        return None
    try:
        from orchestrator.oidc.provider import Provider
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"OpenID Connect needs the package {error.name}: pip install 'posology[oidc]'"
        ) from None
    return Provider(options)
