"""Endpoints of webhooks: their state, their last attempt, and the messages that were given up."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.responses import Response

from orchestrator.console.access import Asked, redirect
from orchestrator.console.pages import HOME, whole_number
from orchestrator.rendering.forms.columns import facts, table
from orchestrator.rendering.forms.jobs import ENDPOINTS, FAILURES, endpoint_state
from orchestrator.webhooks.request import WebhookRequest
from orchestrator.webhooks.store import MAX_ENDPOINTS, WebhookStore
from posology.errors import InvalidQuery
from posology.published.webhooks.endpoints import WebhookOutput
from posology.published.webhooks.messages import DEFAULT_EVENTS, WebhookEvent

#: characters of a path's part up to which it is a word, and those of a longer one that are shown: it may be a token
_WORD, _SHOWN = 20, 4
_PARTS = re.compile(r"[^/]+")
#: failures on a page
_PAGE = 20
#: more messages than are kept
_MOST = 10**6
#: types of messages that a form offers
_EVENTS = tuple(event for event in WebhookEvent if event is not WebhookEvent.TEST)
#: time for which the old secret signs, too, in seconds, and its name
OVERLAPS = {"86400": "in a day", "3600": "in an hour", "0": "at once: it leaked"}
_PATH = f"{HOME}/webhooks"
#: columns of the list, of the page of one, and of its failures
_LISTED = "endpoint, address, state, queued, delivered, given up, last attempt"
_FACTS = "address, messages, created, queued, delivered, given up, last attempt, paused"
_GIVEN_UP = "given up, type, about, attempts, reason"


async def listed(asked: Asked) -> Response:
    """Show the endpoints, which are few, and the form that adds one."""
    return await _list(asked)


async def created(asked: Asked) -> Response:
    """Add an endpoint, and show its secret once."""
    url = asked.form.get("url", "").strip()
    events = [event.value for event in _EVENTS if asked.form.get(event.value)]
    try:
        wanted = WebhookRequest.parse({"url": url, "events": events})
        made, secret = await _webhooks(asked).create(
            wanted.url, tenant=asked.own, events=wanted.events
        )
    except InvalidQuery as error:
        return await _list(asked, failed=error)
    return await _page(asked, made, secret=secret)


async def shown(asked: Asked) -> Response:
    """Show an endpoint with a page of its failures, newest first."""
    return await _page(asked, await _webhooks(asked).get(_id(asked), tenant=asked.own))


async def rotated(asked: Asked) -> Response:
    """Make a new secret, and show it once."""
    overlap = asked.form.get("overlap", "")
    if overlap not in OVERLAPS:
        raise InvalidQuery(f"overlap must be one of {', '.join(OVERLAPS)}", field="overlap")
    made, secret = await _webhooks(asked).rotate(
        _id(asked), tenant=asked.own, overlap=float(overlap)
    )
    return await _page(asked, made, secret=secret)


async def tested(asked: Asked) -> Response:
    """Queue a test message."""
    await _webhooks(asked).test(_id(asked), tenant=asked.own)
    return redirect(f"{_PATH}/{_id(asked)}")


async def sent_again(asked: Asked) -> Response:
    """Queue the messages that were given up again."""
    await _webhooks(asked).redeliver(_id(asked), tenant=asked.own)
    return redirect(f"{_PATH}/{_id(asked)}")


async def switched(asked: Asked) -> Response:
    """Pause an endpoint, or resume it."""
    to = asked.form.get("to")
    if to not in ("paused", "resumed"):
        raise InvalidQuery(f"to must be paused or resumed (got {to!r})", field="to")
    await _webhooks(asked).pause(_id(asked), tenant=asked.own, paused=to == "paused")
    return redirect(f"{_PATH}/{_id(asked)}")


async def removed(asked: Asked) -> Response:
    """Delete an endpoint with its messages."""
    await _webhooks(asked).delete(_id(asked), tenant=asked.own)
    return redirect(_PATH)


def _webhooks(asked: Asked) -> WebhookStore:
    return WebhookStore(asked.api.jobs(), asked.api.settings.webhooks_allowed)


def _id(asked: Asked) -> str:
    return str(asked.request.path_params["webhook"])


async def _list(asked: Asked, failed: InvalidQuery | None = None) -> Response:
    found = await _webhooks(asked).all(tenant=asked.own)
    return asked.page(
        "webhooks.html",
        200 if failed is None else 422,
        webhooks=table(ENDPOINTS, map(_shown, found), _LISTED),
        most=MAX_ENDPOINTS,
        events=_EVENTS,
        chosen=DEFAULT_EVENTS
        if failed is None
        else [one for one in _EVENTS if asked.form.get(one)],
        url="" if failed is None else asked.form.get("url", ""),
        failed=None if failed is None else failed.message,
    )


async def _page(asked: Asked, found: WebhookOutput, *, secret: str | None = None) -> Response:
    given = asked.request.query_params.get("after") or "-1"
    after = whole_number(given, "after", least=-1, most=_MOST)
    page = await _webhooks(asked).failures(found.id, tenant=asked.own, after=after, limit=_PAGE)
    return asked.page(
        "webhook.html",
        webhook=found,
        state=endpoint_state(found),
        known=facts(ENDPOINTS, _shown(found), _FACTS),
        secret=secret,
        overlaps=OVERLAPS,
        failures=table(FAILURES, page.failures, _GIVEN_UP),
        next=page.next,
    )


def _shown(one: WebhookOutput) -> WebhookOutput:
    return one.model_copy(update={"url": without_secrets(one.url)})


def without_secrets(url: str) -> str:
    """Return an address without its user, its fragment, the values of its query and most of long parts of its path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "…"
    host = parts.netloc.rpartition("@")[2]
    path = _PARTS.sub(lambda found: _word(found[0]), parts.path)
    query = "&".join(map(_value, parts.query.split("&"))) if parts.query else ""
    return f"{parts.scheme}://{host}{path}{'?' if query else ''}{query}"


def _word(text: str) -> str:
    return text if len(text) <= _WORD else f"{text[:_SHOWN]}…"


def _value(field: str) -> str:
    name, named, _ = field.partition("=")
    return f"{_word(name)}=…" if named else "…"
