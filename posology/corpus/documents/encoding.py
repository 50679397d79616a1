"""The text of a page's bytes, by the encoding that browsers find.

A byte order mark decides, else what the page says of itself within its first bytes ("prescan a byte stream to determine its
encoding", https://html.spec.whatwg.org/multipage/parsing.html), with the labels of https://encoding.spec.whatwg.org. A
browser has a guess for a page that says nothing; here it must be UTF-8.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

import webencodings

#: bytes in which a page names its encoding; the standard recommends to look at 1,024
HEAD = 8_192

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: an XML declaration in UTF-16
_WIDE = ((b"<\0?\0x\0", "utf-16-le"), (b"\0<\0?\0x", "utf-16-be"))
_DECLARED = re.compile(rb"<\?xml\s[^>]{0,200}?\bencoding\s*=\s*[\"']([^\"'<>]{1,40})[\"']")
_TAG = re.compile(rb"</?([A-Za-z][^\s/>]*)")
_ATTRIBUTE = re.compile(
    rb"[\s/]*([^\s/>][^\s/>=]*)\s*(?:=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"'][^\s>]*)))?"
)
_CHARSET = re.compile(rb"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"']+))", re.IGNORECASE)
#: encodings of several bytes a character: what is valid in one may by chance be valid UTF-8
_WIDE_ONES = frozenset(
    {"gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "utf-8"}
)
#: of the standard's encodings, what a page means that names them
_MEANT = {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}


class Undecodable(Exception):
    """A page whose encoding is not known, with the reason."""


def decoded(content: bytes) -> str:
    """Return a page's text; bytes that are none of its encoding are U+FFFD, as in browsers.

    Raises:
        Undecodable: it names no encoding that browsers know, and is no UTF-8; or it is no text.
    """
    text = _decoded(content)
    if text.count("\0") * 4 > len(text):
        raise Undecodable(
            "has no text, or text in UTF-16 without a byte order mark: save it as UTF-8"
        )
    return text.replace("\0", "\ufffd")


def _decoded(content: bytes) -> str:
    for mark, name in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(name, errors="replace")
    for start, name in _WIDE:
        if content.startswith(start):
            return content.decode(name, errors="replace")
    labels = list(_labels(content[:HEAD]))
    encoding = next(filter(None, map(_known, labels)), None)
    try:
        if encoding is None or encoding.name not in _WIDE_ONES:
            # UTF-8 in all its bytes is hardly ever anything else: the page was served by a name that it has not itself
            return content.decode()
    except UnicodeDecodeError as error:
        if encoding is None:
            named = f"names an unknown encoding, {labels[0]}," if labels else "names no encoding"
            raise Undecodable(
                f"{named} and is not UTF-8 (byte 0x{content[error.start]:02X} at {error.start:,}): save it as UTF-8"
            ) from None
    # the standard reads both in the same way; Python's decoder of the older one knows less
    codec = "gb18030" if encoding.name == "gbk" else encoding.codec_info.name
    return content.decode(codec, errors="replace")


def _known(label: str) -> webencodings.Encoding | None:
    found = webencodings.lookup(label)
    if found is None or found.name == "replacement":
        return None
    return webencodings.lookup(_MEANT[found.name]) if found.name in _MEANT else found


def _labels(head: bytes) -> Iterator[str]:
    """Yield the labels of encodings that a page names: in its elements ``meta``, and in its XML declaration."""
    at = 0
    while (at := head.find(b"<", at)) >= 0:
        if head.startswith(b"<!--", at):
            # the dashes of an empty comment are those of its beginning and of its end
            at = head.find(b"-->", at + 2)
            if at < 0:
                break
        elif tag := _TAG.match(head, at):
            attributes: dict[bytes, bytes] = {}
            at = tag.end()
            while found := _ATTRIBUTE.match(head, at):
                attributes.setdefault(found[1].lower(), found[2] or found[3] or found[4] or b"")
                at = found.end()
            if tag[0].lower() == b"<meta" and (label := _label(attributes)):
                yield label.decode("latin-1").strip()
        elif head[at + 1 : at + 2] in (b"!", b"/", b"?") and (end := head.find(b">", at)) >= 0:
            at = end
        else:
            at += 1
    if declared := _DECLARED.match(head):
        yield declared[1].decode("latin-1")


def _label(attributes: Mapping[bytes, bytes]) -> bytes | None:
    """Return the label that an element ``meta`` gives to its page's encoding; ``None``: none."""
    if b"charset" in attributes:
        return attributes[b"charset"]
    if attributes.get(b"http-equiv", b"").strip().lower() != b"content-type":
        return None
    found = _CHARSET.search(attributes.get(b"content", b""))
    return found and (found[1] or found[2] or found[3])
