"""``posology keys``: API keys of providers, stored for this user."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import errors
from orchestrator.settings import key_providers, keys
from posology.errors import ConfigurationError, InvalidQuery

if TYPE_CHECKING:
    from orchestrator.configuration.keys import Keys

app = typer.Typer(help="Store API keys of providers for this user.")

ProviderArgument = Annotated[
    str, typer.Argument(metavar="PROVIDER", help=f"Provider: {', '.join(key_providers())}.")
]


@app.command("set")
def set_(provider: ProviderArgument) -> None:
    """Store a provider's API key, read from a prompt or from standard input.

    It goes into the system's keyring, or without one into a file that only you can read. An environment variable such
    as OPENAI_API_KEY comes before it.
    """
    with errors(as_json=False):
        _check(provider)
        if sys.stdin.isatty():
            key = typer.prompt(
                f"API key of {provider}", hide_input=True, default="", show_default=False
            )
        else:
            key = sys.stdin.readline()
        key = key.strip()
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise InvalidQuery(
                "the key is empty or has characters that no key has: copy it again", field="key"
            )
        place = _stored().set(provider, key)
        sys.stdout.write(f"stored the key of {provider} ({place})\n")


@app.command("list")
def list_() -> None:
    """List the providers with a stored key, and where it is. No key is printed."""
    with errors(as_json=False):
        places = _stored().places()
        for provider, place in sorted(places.items()):
            sys.stdout.write(f"{provider}\t{place}\n")
        if not places:
            sys.stderr.write("no keys are stored: `posology keys set PROVIDER` stores one\n")


@app.command("remove")
def remove(provider: ProviderArgument) -> None:
    """Remove a stored key."""
    with errors(as_json=False):
        _check(provider)
        if not _stored().remove(provider):
            raise ConfigurationError(f"no key of {provider} is stored")
        sys.stdout.write(f"removed the key of {provider}\n")


def _stored() -> Keys:
    found = keys()
    if found is None:
        raise ConfigurationError("POSOLOGY_CONFIG is off, so no keys are stored: unset it")
    return found


def _check(provider: str) -> None:
    if provider not in key_providers():
        raise InvalidQuery(
            f"PROVIDER must be one of {', '.join(key_providers())} (got {provider!r})",
            field="provider",
        )
