"""Text of BibTeX fields: LaTeX through pylatexenc, and plain text with characters that LaTeX reads otherwise.

Publishers write abstracts with bare ``%``, ``&`` and ``$``. To LaTeX the rest of a line behind ``%`` is a comment; here it is
text. A command that is not known is an error: without it a sentence may say something else.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pylatexenc.latex2text import LatexNodes2Text

#: characters of one text
MAX_TEXT = 131_072

_LATEX = re.compile(r"[\\{}$]")
_BARE = re.compile(r"(?<!\\)[%&#]")
#: "about": between words it is a space
_ABOUT = re.compile(r"(?<![\S\\])~")
#: a pair of dollars on one line, or one that is alone
_DOLLAR = re.compile(r"(?<!\\)\$(?:([^$\n]{1,300}?)(?<!\\)\$)?")
_MATH = re.compile(r"[\\^_<>=]|\A[^\s\d]\S*\Z")
#: raised and lowered figures behind a letter stand in line, as MEDLINE writes them
_INLINE = re.compile(r"(?<=[^\W\d_])[_^](?=[\d+−-])")
_SIGNS = {
    "textless": "<",
    "textgreater": ">",
    "textdegree": "°",
    "degree": "°",
    "textmu": "µ",
    "textpm": "±",
    "textbar": "|",
    "textasciitilde": "~",
    "textbackslash": "\\",
    "textbraceleft": "{",
    "textbraceright": "}",
    "leqslant": "≤",
    "geqslant": "≥",
    "mathrm": "%(1)s",
    "mathsf": "%(1)s",
    "mathit": "%(1)s",
    "textsuperscript": "^%(1)s",
    "textsubscript": "_%(1)s",
}


class LatexError(ValueError):
    """A text that is not the LaTeX that can be read, with the reason."""


def plain_of(text: str) -> str:
    """Return a field's text without LaTeX.

    Raises:
        LatexError: it has a command that is not known, its braces are not balanced, or it is too long.
    """
    if _LATEX.search(text) is None:
        return text
    if len(text) > MAX_TEXT:
        raise LatexError(f"longer than {MAX_TEXT:,} characters")
    shielded = _ABOUT.sub(r"\\textasciitilde{}", _DOLLAR.sub(_dollars, _BARE.sub(r"\\\g<0>", text)))
    from pylatexenc.latexwalker import LatexWalkerParseError

    try:
        reader, syntax = _reader()
        shown: str = reader.latex_to_text(shielded, latex_context=syntax, tolerant_parsing=False)
    except LatexWalkerParseError as error:
        raise LatexError(f"not LaTeX: {str(error).splitlines()[0][:100]}") from None
    except RecursionError:
        raise LatexError("not LaTeX: nested too deeply") from None
    return _INLINE.sub("", shown).replace("^∘", "°")


def _dollars(found: re.Match[str]) -> str:
    inner = found[1]
    if inner is not None and _MATH.search(inner):
        return found[0]
    return found[0].replace("$", r"\$")


@cache
def _reader() -> tuple[LatexNodes2Text, Any]:
    """Return the reader, and the commands whose arguments it parses."""
    from pylatexenc.latex2text import (
        LatexNodes2Text,
        MacroTextSpec,
        get_default_latex_context_db,
    )
    from pylatexenc.latexwalker import get_default_latex_context_db as get_syntax
    from pylatexenc.macrospec import std_macro

    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)
    known = get_default_latex_context_db()
    known.add_context_category(
        "signs", prepend=True, macros=[MacroTextSpec(name, sign) for name, sign in _SIGNS.items()]
    )
    known.set_unknown_macro_spec(MacroTextSpec("", simplify_repl=_unknown))
    syntax = get_syntax()
    syntax.add_context_category(
        "signs",
        prepend=True,
        macros=[std_macro(name, "{") for name, sign in _SIGNS.items() if "%(1)s" in sign],
    )
    return LatexNodes2Text(latex_context=known, keep_comments=True, math_mode="text"), syntax


def _unknown(node: Any) -> str:
    raise LatexError(f"unknown LaTeX command \\{node.macroname}")
