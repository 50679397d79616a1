"""What a page for a browser refers to, and what it runs."""

from __future__ import annotations

from html.parser import HTMLParser


class Links(HTMLParser):
    """Collects what a page refers to, and what it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.inline: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links |= {str(given[name]) for name in ("href", "src") if name in given}
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        self._script = tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self.inline.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._script = False
