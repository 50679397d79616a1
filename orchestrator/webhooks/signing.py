"""Signatures of messages (Standard Webhooks 1.0.0, symmetric)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

#: begin of a secret
PREFIX = "whsec_"
#: random bytes of a secret; the standard asks for 24 to 64
_BYTES = 32


def new_secret() -> str:
    """Return a new secret, ``whsec_…``."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def signature(secret: str, message: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message by one secret: ``v1,`` and HMAC-SHA256 in base64.

    Args:
        secret: with its prefix.
        message: id of the message.
        timestamp: time of the attempt, POSIX seconds.
        body: as it is sent.
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def headers(secrets: Iterable[str], message: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message; with several secrets, the receiver accepts any of them."""
    return {
        "webhook-id": message,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(one, message, timestamp, body) for one in secrets),
    }
