"""Text of BibTeX fields: LaTeX through pylatexenc, and plain text with characters that LaTeX reads otherwise.

Publishers write abstracts with bare ``%``, ``&`` and ``$``. To LaTeX the rest of a line behind ``%`` is a comment; here it is
text. A command that is not known is an error: without it a sentence may say something else.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

from posology.types import UNREADABLE

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
#: a fence of a formula, which may be left open
_FENCE = re.compile(r"\\(?:left|right)(?![A-Za-z])\s*\.?")
#: raised or lowered, and more than one word or number
_GROUP = re.compile(r"(?<!\\)([_^])\{(?=[^{}]+[-+−=/<>])((?![-+−]?[\w.]+\})[^{}]*)\}")
#: raised and lowered figures behind a letter stand in line, as MEDLINE writes them, and so do those of isotopes
_INLINE = re.compile(r"(?<=[^\W\d_])[_^](?=[\d+−-])|(?:\A|(?<=[\s(\[]))\^(?=[0-9]{1,3}m?[A-Z])")

_SIMPLE = re.compile(r"\w+(?:[.,]\w+)?")

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega"
)
#: what commands without arguments write
_SIGNS = {
    "textless": "<", "textgreater": ">", "textdegree": "°", "degree": "°", "textmu": "µ", "micro": "µ", "textpm": "±",
    "textbar": "|", "textasciitilde": "~", "textasciicircum": "^", "textbackslash": "\\", "leqslant": "≤",
    "geqslant": "≥", "pounds": "£", "textsterling": "£", "euro": "€", "texteuro": "€", "yen": "¥", "permil": "‰",
    "perthousand": "‰", "celsius": "°C", "textcelsius": "°C", "degreeCelsius": "°C", "ohm": "Ω", "angstrom": "Å",
    "slash": "/", "textbraceleft": "{", "textbraceright": "}", "textunderscore": "_", "lq": "‘", "rq": "’", "checkmark": "✓",
}  # fmt: skip
#: spaces, breaks and faces, which are no words
_SPACES = {
    **dict.fromkeys(
        (
            "thinspace", "medspace", "thickspace", "enspace", "enskip", "nobreakspace", "newline", "linebreak",
            "par", "newblock", "hfill", "break",
        ),
        " ",
    ),
    **dict.fromkeys(
        (
            "/", "negthinspace", "xspace", "noindent", "protect", "relax", "allowbreak", "nolinebreak", "unskip",
            "it", "bf", "em", "rm", "sf", "tt", "sc", "sl", "itshape", "bfseries", "rmfamily", "sffamily", "ttfamily",
            "scshape", "slshape", "upshape", "mdseries", "normalfont", "boldmath", "unboldmath", "tiny", "scriptsize",
            "footnotesize", "small", "normalsize", "large", "Large", "centering", "displaystyle", "textstyle",
        ),
        "",
    ),
}  # fmt: skip
#: what commands with arguments write, and how many arguments they have
_FRAMES = {
    **dict.fromkeys(
        (
            "mathrm", "mathsf", "mathit", "mathbf", "mathtt", "mathcal", "mathscr", "mathfrak", "mathbb", "mathnormal",
            "boldsymbol", "bm", "pmb", "mathord", "mathrel", "mathbin", "mathop", "operatorname", "mbox", "hbox", "fbox",
            "textnormal", "textup", "textmd", "text", "doi", "url", "path", "natexlab",
        ),
        ("%(1)s", 1),
    ),
    "textsuperscript": ("^%(1)s", 1),
    "textsubscript": ("_%(1)s", 1),
    "enquote": ("“%(1)s”", 1),
    "href": ("%(2)s", 2),
    "bibinfo": ("%(2)s", 2),
    "hspace": (" ", 1),
    "label": ("", 1),
    "index": ("", 1),
    "phantom": ("", 1),
    "vphantom": ("", 1),
    "hphantom": ("", 1),
}  # fmt: skip
#: pylatexenc writes a placeholder: the words are elsewhere
_ELSEWHERE = (
    "cite", "citep", "citet", "ref", "eqref", "cref", "Cref", "autoref", "includegraphics",
)  # fmt: skip
#: it keeps what is in them for a title page, or leaves it out
_LEFT_OUT = ("title", "author", "date", "maketitle", "input", "include")
#: environments of running text
_BLOCKS = frozenset(
    {
        "abstract", "center", "description", "document", "enumerate", "flushleft", "flushright", "itemize", "quotation",
        "quote", "small", "sloppypar", "math", "displaymath", "equation", "equation*", "align", "align*", "eqnarray",
        "eqnarray*", "gather", "gather*", "multline", "multline*", "split", "aligned", "gathered", "subequations",
    }
)  # fmt: skip


class LatexError(ValueError):
    """A text that is not the LaTeX that can be read, with the reason."""


def plain_of(text: str) -> str:
    """Return a field's text without LaTeX.

    Where LaTeX would write something from elsewhere, such as a reference, stands :data:`~posology.types.UNREADABLE`.

    Raises:
        LatexError: it has a command that is not known, its braces are not balanced, or it is too long.
    """
    if _LATEX.search(text) is None:
        return text
    if len(text) > MAX_TEXT:
        raise LatexError(f"longer than {MAX_TEXT:,} characters")
    shielded = _ABOUT.sub(r"\\textasciitilde{}", _DOLLAR.sub(_dollars, _BARE.sub(r"\\\g<0>", text)))
    shielded = _GROUP.sub(r"\1{(\2)}", _FENCE.sub("", shielded))
    try:
        reader, syntax = _reader()
        shown: str = reader.latex_to_text(shielded, latex_context=syntax, tolerant_parsing=False)
    except LatexError:
        raise
    except RecursionError:
        raise LatexError("not LaTeX: nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - it raises any of commands that it misreads, such as a \verb at the end
        own = type(error).__module__.startswith("pylatexenc") and str(error)
        reason = (
            own.splitlines()[0][:100] if own else f"a command is misread ({type(error).__name__})"
        )
        raise LatexError(f"not LaTeX: {reason}") from None
    return _INLINE.sub("", shown).replace("^∘", "°")


def _dollars(found: re.Match[str]) -> str:
    inner = found[1]
    if inner is not None and _MATH.search(inner):
        return found[0]
    return found[0].replace("$", r"\$")


def _signs() -> dict[str, str]:
    """Return what commands without arguments write."""
    greek: dict[str, str] = {}
    for name in _GREEK.split():
        spelt = name.upper().replace("LAMBDA", "LAMDA")
        small = unicodedata.lookup(f"GREEK SMALL LETTER {spelt}")
        greek |= {f"text{name}": small, f"up{name}": small}
        greek[f"text{name.capitalize()}"] = greek[f"Up{name}"] = small.upper()
    return greek | _SIGNS | _SPACES | dict.fromkeys(_ELSEWHERE, UNREADABLE)


@cache
def _reader() -> tuple[LatexNodes2Text, Any]:
    """Return the reader, and the commands whose arguments it parses."""
    from pylatexenc.latex2text import (
        EnvironmentTextSpec,
        LatexNodes2Text,
        MacroTextSpec,
        get_default_latex_context_db,
    )
    from pylatexenc.latexwalker import get_default_latex_context_db as get_syntax
    from pylatexenc.macrospec import std_macro

    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)
    known = get_default_latex_context_db()
    macros = [MacroTextSpec(name, sign) for name, sign in _signs().items()]
    macros += [MacroTextSpec(name, frame) for name, (frame, _) in _FRAMES.items()]
    macros += [MacroTextSpec(name, simplify_repl=_unknown) for name in _LEFT_OUT]
    macros += [
        MacroTextSpec(name, simplify_repl=_fraction)
        for name in ("frac", "dfrac", "tfrac", "nicefrac", "sfrac")
    ]
    known.add_context_category(
        "ours",
        prepend=True,
        macros=macros,
        environments=[EnvironmentTextSpec("verbatim", simplify_repl=_unknown_environment)],
    )
    known.set_unknown_macro_spec(MacroTextSpec("", simplify_repl=_unknown))
    known.set_unknown_environment_spec(EnvironmentTextSpec("", simplify_repl=_environment))
    syntax = get_syntax()
    syntax.add_context_category(
        "ours",
        prepend=True,
        macros=[
            *(std_macro(name, "{" * count) for name, (_, count) in _FRAMES.items()),
            *(std_macro(name, "") for name in _SPACES),
            *(std_macro(name, "{{") for name in ("dfrac", "tfrac", "nicefrac", "sfrac")),
        ],
    )
    return LatexNodes2Text(latex_context=known, keep_comments=True, math_mode="text"), syntax


def _fraction(node: Any, l2tobj: Any) -> str:
    parts = [str(l2tobj.nodelist_to_text([one])).strip() for one in node.nodeargd.argnlist]
    return "/".join(part if _SIMPLE.fullmatch(part) else f"({part})" for part in parts)


def _unknown(node: Any) -> str:
    raise LatexError(f"unknown LaTeX command \\{node.macroname}")


def _environment(node: Any, l2tobj: Any) -> str:
    if node.environmentname not in _BLOCKS:
        return _unknown_environment(node)
    return str(l2tobj.nodelist_to_text(node.nodelist))


def _unknown_environment(node: Any) -> str:
    raise LatexError(f"unknown LaTeX environment {node.environmentname}")
