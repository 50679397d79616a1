"""The tools for watches, where a service checks them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from orchestrator.api.mcp.desk import Desk, Told, Watches
from orchestrator.api.mcp.tools import MAX_ID, Done, Offer, as_data
from orchestrator.question.sent import Text
from orchestrator.watches.request import WatchRequest
from posology.published.base import Described
from posology.published.watches.forms import WatchList, WatchOutput


class NoArguments(Described):
    """Nothing."""


class WatchArguments(Described):
    """A watch."""

    watch: Annotated[Text, Field(min_length=1, max_length=MAX_ID)]
    """Id of the watch, e.g. watch_0199a1b2c3d45f6e7a8b9c0d1e2f."""


async def _create(desk: Desk, asked: WatchRequest, _: Told) -> Done:
    return as_data(await _watches(desk).create(asked))


async def _all(desk: Desk, _: NoArguments, __: Told) -> Done:
    return as_data(WatchList(watches=await _watches(desk).all()))


async def _get(desk: Desk, asked: WatchArguments, _: Told) -> Done:
    return as_data(await _watches(desk).get(asked.watch))


async def _end(desk: Desk, asked: WatchArguments, _: Told) -> Done:
    return as_data(await _watches(desk).end(asked.watch))


def _watches(desk: Desk) -> Watches:
    watches = desk.watches
    assert watches is not None
    return watches


#: by name, in the order in which clients list them
WATCHING: Mapping[str, Offer] = MappingProxyType(
    {
        "watch": Offer(
            title="Watch a question",
            description="Ask a question now, and again whenever a later check finds that its evidence in the index has "
            "changed; with live, literature is fetched before each check. Checks are free; each answer is paid for within the "
            "tenant's budget and max_cost_usd. The same request "
            "again makes no second watch. Call it only when the user asks to be kept informed.",
            takes=WatchRequest,
            gives=WatchOutput,
            work=_create,
            reads=False,
        ),
        "list_watches": Offer(
            title="List watches",
            description="List the tenant's watches, oldest first: state, question, time of the last check and of the last "
            "change. Read one with get_watch.",
            takes=NoArguments,
            gives=WatchList,
            work=_all,
        ),
        "get_watch": Offer(
            title="Read a watch",
            description="Return a watch with its last answer, and what changed from one answer to the next: verdict, sources "
            "new and gone, conflicts, retractions.",
            takes=WatchArguments,
            gives=WatchOutput,
            work=_get,
        ),
        "end_watch": Offer(
            title="End a watch",
            description="End a watch: its question is asked no more. Call it only when the user asks for it.",
            takes=WatchArguments,
            gives=WatchOutput,
            work=_end,
            reads=False,
            ends=True,
        ),
    }
)
