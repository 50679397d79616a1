"""Templates, and the headers of every page: nothing from elsewhere, nothing inline, nothing framed or kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from orchestrator.rendering.forms.money import audit_lines, estimates, remaining
from orchestrator.rendering.sources import facts, link, warning
from orchestrator.rendering.words import (
    SECONDS,
    UNKNOWN,
    lasted,
    moment,
    money,
    percent,
    plural,
    safe,
    size,
)
from policies.affordable import describe
from posology.errors import InvalidQuery
from posology.evidence import level
from posology.version import __version__

#: path of the console
HOME = "/console"
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        # with `no-referrer`, browsers would send forms without their origin
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cache-Control": "no-store",
    }
)
#: static files, with their media types
_STATIC: Mapping[str, str] = MappingProxyType(
    {
        "console.css": "text/css",
        "console.js": "text/javascript",
        "htmx.min.js": "text/javascript",
        "htmx-sse.min.js": "text/javascript",
        "icon.svg": "image/svg+xml",
    }
)
#: hex digits of a file's digest in its address
_DIGITS = 16


def respond(template: str, status: int = 200, **values: Any) -> Response:
    """Return a page, or a part of one, as a response."""
    text = _environment().get_template(template).render(values)
    return HTMLResponse(text.encode(errors="replace"), status, dict(HEADERS))


def part(template: str, **values: Any) -> str:
    """Return a part of a page as text."""
    return _environment().get_template(template).render(values)


def static(name: str) -> str:
    """Return the address of a static file, which changes with its content."""
    return f"{HOME}/static/{_file(name)[0]}/{name}"


async def serve_static(request: Request) -> Response:
    """Serve a static file, for ever; another digest than its own is not found."""
    name, digest = request.path_params["name"], request.path_params["digest"]
    if name not in _STATIC or _file(name)[0] != digest:
        return Response("not found", 404, dict(HEADERS), "text/plain")
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_file(name)[1], headers=headers, media_type=_STATIC[name])


@cache
def _file(name: str) -> tuple[str, bytes]:
    content = (files("orchestrator.console") / "static" / name).read_bytes()
    return hashlib.sha256(content).hexdigest()[:_DIGITS], content


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("orchestrator.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        {
            "money": money,
            "when": when,
            "lasted": lasted,
            "count": "{:,}".format,
            "percent": percent,
            "plural": plural,
            "sentence": _sentence,
            "size": size,
        }
    )
    made.globals.update(
        {
            "home": HOME,
            "static": static,
            "version": __version__,
            "facts": facts,
            "link": link,
            "warning": warning,
            "level": level,
            "audit_lines": audit_lines,
            "dose": describe,
            "estimate_table": estimates,
            "remaining": remaining,
        }
    )
    made.globals["m"] = made.get_template("macros.html").module
    return made


def _shown(value: Any) -> Any:
    """Remove what is not seen from every text: controls, zero-width characters, overrides of the reading direction."""
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def when(at: datetime | None) -> Markup | str:
    """Return a time, UTC, to the second; a dash if there is none."""
    if at is None:
        return UNKNOWN
    return Markup('<time datetime="{}">{}</time>').format(
        at.astimezone(UTC).isoformat(timespec="seconds"), moment(at, form=SECONDS)
    )


def _sentence(text: str) -> str:
    """Return a title with a capital, as pages have them."""
    return text[:1].upper() + text[1:]


def whole_number(given: str, field: str, *, most: int, least: int = 0) -> int:
    """Read a whole number of an address.

    Args:
        given: its digits, perhaps after a minus sign; Python makes no number of thousands of them.
        field: name of the parameter.
        most: largest number.
        least: smallest number.

    Raises:
        InvalidQuery: it is none, or too small or large.
    """
    digits = given.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(most)):
        number = int(given)
        if least <= number <= most:
            return number
    raise InvalidQuery(
        f"{field} must be a whole number from {least} to {most} (got {given[:40]!r})", field=field
    )
