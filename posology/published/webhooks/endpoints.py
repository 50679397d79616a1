"""Endpoints of webhooks and failed messages, as JSON."""

from __future__ import annotations

from datetime import datetime

from posology.published.base import Published
from posology.published.webhooks.messages import WebhookEvent


class WebhookOutput(Published):
    """An endpoint of webhooks."""

    id: str
    """Id of the endpoint."""
    tenant: str
    """Tenant whose events it receives."""
    url: str
    """Address that receives messages."""
    events: tuple[WebhookEvent, ...]
    """Types of the messages that it receives."""
    created: datetime
    """Time of its creation."""
    disabled: datetime | None
    """Time when it answered 410 (gone), and was disabled; null: it is enabled."""
    paused: datetime | None = None
    """Time since when its messages wait; null: it is not paused."""
    secrets: int
    """Number of secrets that sign its messages: 2 for a while after a rotation."""
    queued: int
    """Number of messages that are to be delivered."""
    delivered: int
    """Number of messages that were delivered."""
    failed: int
    """Number of messages that were given up."""
    tried: datetime | None
    """Time of the last attempt; null: none yet."""
    status: int | None
    """HTTP status of the last attempt; null: none yet, or no response."""
    error: str | None
    """Reason why the last attempt failed, up to 200 characters; null: it did not fail."""


class WebhookCreated(WebhookOutput):
    """An endpoint with its new secret, which is shown only once."""

    secret: str
    """Secret for verifying signatures, `whsec_…`."""


class WebhookList(Published):
    """Endpoints of a tenant, oldest first."""

    webhooks: tuple[WebhookOutput, ...]
    """The endpoints."""


class WebhookTest(Published):
    """A test message."""

    message: str
    """Id of the message; the endpoint receives it as `webhook-id`."""


class WebhookFailure(Published):
    """A message that was given up."""

    message: str
    """Id of the message."""
    type: WebhookEvent
    """Type of the event."""
    timestamp: datetime
    """Time of the event."""
    subject: str
    """Id of the job or batch, or name of the budget, that it is about."""
    tries: int
    """Number of attempts."""
    failed: datetime
    """Time when it was given up."""
    status: int | None
    """HTTP status of the last attempt; null: no response, or no attempt."""
    error: str
    """Reason, up to 200 characters."""


class WebhookFailures(Published):
    """Messages of an endpoint that were given up, newest first; the last 500 are kept."""

    failures: tuple[WebhookFailure, ...]
    """The messages."""
    next: int | None
    """Value of `after` for the next page; null: this is the last one."""


class WebhookRedelivery(Published):
    """Messages that are delivered again."""

    queued: int
    """Number of messages that were given up and are queued again."""
