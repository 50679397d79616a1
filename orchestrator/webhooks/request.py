"""An endpoint as callers ask for it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from orchestrator.question.sent import Sent, Text
from orchestrator.webhooks.targets import MAX_URL
from posology.published.webhooks.messages import DEFAULT_EVENTS, WebhookEvent


class WebhookRequest(Sent):
    """An endpoint that is to receive messages."""

    url: Annotated[Text, Field(max_length=MAX_URL)]
    """Address that receives messages by POST: `https://…`, on a public host."""
    events: Annotated[tuple[WebhookEvent, ...], Field(min_length=1, max_length=10)] = DEFAULT_EVENTS
    """Types of the messages that it receives. Default: all but `row.ended`."""
