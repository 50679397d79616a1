"""API keys that are stored for a user: in the system's keyring, else in a file that only the user can read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.stack.folder import write_private
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

_SERVICE = "posology"
#: what stands in the file for a key that is in the keyring
_ELSEWHERE = None


class Place(StrEnum):
    """Place of a stored key."""

    KEYRING = "keyring"
    FILE = "file"


class Keys:
    """Stored keys by provider.

    The file lists every stored key, so that the keyring is asked only for a key that it holds: it can take seconds, and
    may ask the user.

    Args:
        folder: user's configuration folder; it is made for the first key.
        keyring: ``None``: the system's, if the package ``keyring`` is installed and has a secure backend.
    """

    def __init__(self, folder: Path, keyring: KeyringBackend | None = None) -> None:
        self._file = folder / "keys.json"
        self._given = keyring

    def places(self) -> dict[str, Place]:
        """Return the providers with a stored key, and where it is.

        Raises:
            ConfigurationError: the file is damaged, or others can read it.
        """
        return {
            name: Place.KEYRING if key is _ELSEWHERE else Place.FILE
            for name, key in self._read().items()
        }

    def get(self, provider: str) -> str | None:
        """Return a stored key; ``None``: none is stored.

        Raises:
            ConfigurationError: the file is damaged or others can read it, or the keyring does not give the key.
        """
        stored = self._read()
        if provider not in stored:
            return None
        if (key := stored[provider]) is not _ELSEWHERE:
            return key
        found = None
        if (keyring := self._keyring()) is not None:
            with _translated("read"):
                found = keyring.get_password(_SERVICE, provider)
        if not found:
            raise ConfigurationError(
                f"the key of {provider} is not in the keyring any more: run `posology keys set {provider}`"
            )
        return found

    def set(self, provider: str, key: str) -> Place:
        """Store a key, and return where.

        Raises:
            ConfigurationError: the keyring or the file cannot be written.
        """
        stored = self._read()
        keyring = self._keyring()
        if keyring is not None:
            with _translated("write"):
                keyring.set_password(_SERVICE, provider, key)
        self._write({**stored, provider: key if keyring is None else _ELSEWHERE})
        return Place.FILE if keyring is None else Place.KEYRING

    def remove(self, provider: str) -> bool:
        """Remove a key; return whether there was one.

        Raises:
            ConfigurationError: the keyring or the file cannot be written.
        """
        stored = self._read()
        if provider not in stored:
            return False
        keyring = self._keyring() if stored[provider] is _ELSEWHERE else None
        if keyring is not None:
            from keyring.errors import PasswordDeleteError

            with _translated("write"), suppress(PasswordDeleteError):
                # the user may have removed it there
                keyring.delete_password(_SERVICE, provider)
        self._write({name: key for name, key in stored.items() if name != provider})
        return True

    def _keyring(self) -> KeyringBackend | None:
        if self._given is not None:
            return self._given
        try:
            import keyring
        except ImportError:
            return None
        backend = keyring.get_keyring()
        # those of priority below 1 store nothing, or in the clear
        return backend if backend.priority >= 1 else None

    def _read(self) -> dict[str, str | None]:
        try:
            mode = self._file.stat().st_mode
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(f"{self._file} cannot be read: {error.strerror}") from None
        if os.name == "posix" and mode & 0o077:
            raise ConfigurationError(
                f"other users can read {self._file}: run `chmod 600` on it, and renew the keys in it"
            )
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(
            value is None or isinstance(value, str) for value in found.values()
        ):
            raise ConfigurationError(
                f"{self._file} is damaged: remove it, and store the keys again"
            )
        return found

    def _write(self, stored: dict[str, str | None]) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(self._file, json.dumps(stored, indent=2) + "\n")
        except OSError as error:
            raise ConfigurationError(f"{self._file} cannot be written: {error.strerror}") from None


@contextmanager
def _translated(what: str) -> Iterator[None]:
    from keyring.errors import KeyringError

    try:
        yield
    except KeyringError as error:
        raise ConfigurationError(
            f"the keyring cannot be {'read' if what == 'read' else 'written'}: {error}. Unlock it, or set the "
            "environment variable of the key instead."
        ) from None
