"""Error responses of the HTTP API (RFC 9457)."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from posology.published.base import Described

#: what every problem's ``type`` starts with
URN = "urn:posology:problem:"
MEDIA_TYPE = "application/problem+json"


def urn(name: str) -> str:
    """The ``type`` of an error's class: ``JobNotFound`` is ``urn:posology:problem:job-not-found``."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)
    return URN + words.removeprefix("-")


class Problem(Described):
    """A problem document (RFC 9457). Further members are the fields of the error, such as `job`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=[urn("JobNotFound")])
    """Stable type of the problem, for programs."""
    title: str
    """Title, the same for every problem of the type."""
    status: int
    """HTTP status."""
    detail: str
    """What is wrong, and what to do."""
