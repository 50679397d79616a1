"""Pages for a browser: what this service is, and its operations to read and to try.

They load nothing from elsewhere and run no inline script.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from types import MappingProxyType

from fastapi import Request, Response
from starlette.routing import Route

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
#: path → file and media type
_FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "/": ("index.html", "text/html"),
        "/docs": ("docs.html", "text/html"),
        "/docs/page.js": ("page.js", "text/javascript"),
        "/docs/page.css": ("page.css", "text/css"),
    }
)


def _page(name: str, media: str, _: Request) -> Response:
    content = (files("orchestrator.api") / "pages" / name).read_bytes()
    return Response(content, headers=_HEADERS, media_type=media)


#: routes of the pages, outside the OpenAPI document
ROUTES = tuple(
    Route(path, partial(_page, name, media), methods=["GET"])
    for path, (name, media) in _FILES.items()
)
