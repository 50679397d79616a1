"""A watch as callers ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from orchestrator.ingest.live.request import LiveRequest
from orchestrator.ingest.uploads.fetches import as_made
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.errors import InvalidQuery

Period = Literal["hour", "day", "week", "month"]
#: seconds of a period
SECONDS: Mapping[Period, int] = MappingProxyType(
    {"hour": 3_600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400}
)
#: maximum number of seconds from one check to the next
MAX_EVERY = 366 * 86_400


class WatchRequest(JobRequest):
    """A standing question."""

    #: fields of a question that a watch cannot have
    without: ClassVar[frozenset[str]] = frozenset({"fetch", "index_version"})

    every: Period | Annotated[int, Field(ge=SECONDS["hour"], le=MAX_EVERY)] = "week"
    """Time from one check to the next: hour, day, week, month (30 days), or seconds from 3600 to 31622400. Default: week."""

    live: LiveRequest | None = None
    """Literature to fetch before each check, such as {"service": "pubmed"}; an object without fields has every default.
    Default: none."""

    @property
    def seconds(self) -> int:
        """Seconds from one check to the next."""
        return self.every if isinstance(self.every, int) else SECONDS[self.every]

    def settled(self, settings: Settings, *, deadline: float | None = None) -> Self:
        """Return the request with every default filled in; see :meth:`JobRequest.settled`.

        Raises:
            InvalidQuery: it is no valid question, names a fetch or a version of the index, or its literature cannot be
                fetched.
            UnknownModel: the provider is unknown, or the name has no provider.
        """
        for name in sorted(self.without):
            if getattr(self, name) is not None:
                raise InvalidQuery(
                    f"{name}: a watch reads the newest version of the index: omit it", field=name
                )
        if self.live is not None:
            as_made(self.live.of(self), settings)
        return super().settled(settings, deadline=deadline)
