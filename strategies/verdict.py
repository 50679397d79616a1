"""The verdict of a reply, and whether its words give another one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from posology.text.sentences import split
from posology.types import Form, Query
from strategies.compression.checked import ordered_stems, parallels

#: "Yes, …", "No.", but not "No difference was found"
_WORD = re.compile(r"\W*(yes|no|maybe)\b\W*?(?:[,.;:!–—]|\s-|\Z)", re.IGNORECASE)
#: "B.", "(B)", "Option B", "The answer is B", but not "A meta-analysis" and "The answer is a statin"
_LETTER = re.compile(
    r"\W*(?:(?:the\s+)?(?:correct\s+|best\s+)?(?:answer|option|choice)(?:\s+is)?:?\s+\(?([A-E])\b"
    r"(?!(?<=(?-i:a))\s+(?!(?:is|was|because|since|as|and|with|would|has|seems|appears)\b)\w)"
    r"|\(([A-E])\)|([A-E])(?:[.):]|\Z))",
    re.IGNORECASE,
)
#: "E. coli": what is no option, whatever its letter
_SPECIES = re.compile(
    r"\.\s*(?:coli|difficile|perfringens|botulinum|tetani|diphtheriae|jejuni|trachomatis|pneumoniae|psittaci|burnetii|albicans|auris|"
    r"glabrata|neoformans|immitis|parvum|elegans|faecalis|faecium|cloacae|aerogenes|histolytica|granulosus|multilocularis|"
    r"pertussis|cereus|anthracis|subtilis|fragilis|burgdorferi|henselae|cepacia|pseudomallei|abortus|melitensis|longum|breve|"
    r"baumannii|fumigatus|niger|lumbricoides|aegypti|melanogaster)\b"
)


#: words after which a sentence says less than the question asks, or more
_LIMITED = re.compile(
    r"\b(?:whether|may|might|could|if|unless|unclear|possibly|perhaps|potential(?:ly)?|suggests?|but|although|though|however|while|"
    r"whereas|except|rarely|seldom|barely|scarcely|only)\b",
    re.IGNORECASE,
)
#: content words of a question from which on a sentence is known to restate it
_LEAST = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The verdict of a reply."""

    #: one of the question's choices; ``None``: it asks for none, or the reply gives none
    choice: str | None
    #: the verdict of its first sentence, where that is another one; ``None``: it gives the same or none
    worded: str | None
    notes: tuple[str, ...] = ()


def verdict_of(query: Query, choice: str | None, text: str) -> Verdict:
    """Return the verdict of a reply, with a remark where it has none of its own, or its words give another one.

    Args:
        query: the question.
        choice: verdict of the reply.
        text: its answer in words.
    """
    if not query.choices:
        return Verdict(choice=None, worded=None)
    worded = _worded(query, text)
    how = f"begins with “{worded}”"
    if choice not in query.choices:
        if worded in query.choices:
            taken = f"The reply has no verdict of its own: “{worded}” is how its answer begins."
            return Verdict(choice=worded, worded=None, notes=(taken,))
        missing = f"The model gave no verdict of {', '.join(query.choices)}."
        return Verdict(choice=None, worded=None, notes=(missing,))
    if worded is None and query.form is not Form.CHOICE:
        worded = _restated(query.text, text)
        how = f"{'affirms' if worded == 'yes' else 'denies'} what the question asks"
    if worded in (None, choice):
        return Verdict(choice=choice, worded=None)
    differs = f"Words and verdict differ: the answer {how}, and the verdict is “{choice}”."
    return Verdict(choice=choice, worded=worded, notes=(differs,))


def _worded(query: Query, text: str) -> str | None:
    """Return the verdict that a text begins with; ``None``: none."""
    if query.form is not Form.CHOICE:
        found = _WORD.match(text)
        return found[1].lower() if found else None
    found = _LETTER.match(text)
    if found is not None:
        place = next(i for i in (1, 2, 3) if found[i])
        if not _SPECIES.match(text, found.end(place)):
            return found[place].upper()
    start = text.strip().casefold()
    for option in sorted(query.options, key=lambda one: -len(one.text)):
        said = option.text.strip().rstrip(".").casefold()
        # "Aspirin was worse than B" begins with an option, and is for another
        if (
            said
            and start.startswith(said)
            and start[len(said) :].lstrip()[:1] in ("", ".", ";", ":")
        ):
            return option.label
    return None


def _restated(question: str, text: str) -> str | None:
    """Return ``yes`` if a text's first sentence says what a question asks, in its words, and ``no`` if it denies just that.

    ``None``: it does neither, or says less or more: "X may help", "X helps, but …", "B is better than A" where A was asked for.
    """
    first = next((one.of(text) for one in split(text)), "")
    asked = tuple(dict.fromkeys(ordered_stems(question)))
    told = tuple(dict.fromkeys(one for one in ordered_stems(first) if one in asked))
    limits = {one.lower() for one in _LIMITED.findall(first)}
    if len(asked) < _LEAST or told != asked or limits - {*question.lower().split()}:
        return None
    alike = parallels(question, first)
    return None if not alike else "yes" if alike[0] else "no"
