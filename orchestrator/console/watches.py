"""Watches: their state, their last answer and its changes."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.console.access import Asked, redirect
from orchestrator.console.pages import HOME
from orchestrator.rendering.forms.columns import Cell, facts, table
from orchestrator.rendering.forms.watches import CHANGES, WATCHES, last
from orchestrator.watches.store import WatchStore
from posology.errors import InvalidQuery
from posology.types import WatchState

#: columns of the list, and of the page of one
_LISTED = "watch, question, state, next check, last change, error"
_FACTS = "state, every, next check, last check, last change, asked, fetch, job, error"


async def listed(asked: Asked) -> Response:
    """Show the watches, oldest first."""
    found = await WatchStore(asked.api.jobs()).all(tenant=asked.own)
    return asked.page("watches.html", watches=table(WATCHES, found, _LISTED))


async def shown(asked: Asked) -> Response:
    """Show a watch with its last answer and its changes."""
    found = await WatchStore(asked.api.jobs()).get(_id(asked), tenant=asked.own)
    known = facts(WATCHES, found, _FACTS)
    known += [(name, Cell(text=text)) for name, text in last(found)]
    return asked.page("watch.html", watch=found, known=known, changes=table(CHANGES, found.changes))


async def turned(asked: Asked) -> Response:
    """Pause, resume or end a watch."""
    to = asked.form.get("to", "")
    if to not in set(WatchState):
        raise InvalidQuery(f"to must be one of {', '.join(WatchState)} (got {to!r})", field="to")
    await WatchStore(asked.api.jobs()).turn(_id(asked), WatchState(to), tenant=asked.own)
    return redirect(f"{HOME}/watches/{_id(asked)}")


def _id(asked: Asked) -> str:
    return str(asked.request.path_params["watch"])
