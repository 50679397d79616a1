"""Lists that are fetched page by page: their parameters, and the link to the next page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query

from posology.types.money import COLLECTION

#: maximum characters of an id
MAX_ID = 100
#: header of a page, for OpenAPI
NEXT_LINK: Mapping[str, Any] = {
    "Link": {
        "schema": {"type": "string"},
        "description": "Link to the next page (`rel=next`); absent on the last page.",
    }
}
Cursor = Annotated[
    str | None,
    Query(
        max_length=MAX_ID,
        description="Value of `next` on the previous page. Default: the first page.",
    ),
]
InCollection = Annotated[
    str | None,
    Query(
        pattern=COLLECTION,
        description="Name of the collection to read. Default: none, the default index.",
        examples=["trials"],
    ),
]


def next_link(path: str, query: Mapping[str, str | int]) -> dict[str, str]:
    """Return the header with the link to the next page.

    Args:
        path: of the list.
        query: of the next page, in the order of the link.
    """
    return {"Link": f'<{path}?{urlencode(query)}>; rel="next"'}
