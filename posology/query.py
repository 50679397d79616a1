"""Validation of questions: text to a :class:`~posology.types.Query`."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from posology.errors import InvalidQuery
from posology.types import Form, Option, Query

#: maximum number of code points; a longer 'question' would displace the evidence
MAX_QUESTION = 4_000
#: maximum number of code points of an option
MAX_OPTION = 1_000
_LABELS = "ABCDE"


def make_query(
    text: str,
    *,
    form: Form | str = Form.FREE,
    options: Mapping[str, str] | None = None,
    field: str = "question",
) -> Query:
    """Check and normalise a question.

    Args:
        text: the question; outer whitespace is removed.
        form: the form of the answer; giving options makes it ``CHOICE``.
        options: label (A to E, in order, at least two) to wording.
        field: name of the text's field, for errors.

    Raises:
        InvalidQuery: a field is invalid; the error names it.
    """
    question = unicodedata.normalize("NFC", text.strip())
    if not question:
        raise InvalidQuery(f"the {field} is empty", field=field)
    if len(question) > MAX_QUESTION:
        raise InvalidQuery(
            f"the {field} must have <= {MAX_QUESTION} characters (got {len(question)})",
            field=field,
        )
    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise InvalidQuery(f"the {field} is not valid Unicode", field=field) from error
    try:
        wanted = Form(form)
    except ValueError:
        known = ", ".join(Form)
        raise InvalidQuery(f"unknown form {form!r}: choose one of {known}", field="form") from None
    if not options:
        if wanted is Form.CHOICE:
            raise InvalidQuery(
                "a choice question needs 2 to 5 options: write each as `--option A=TEXT`, or in a request "
                'as `"options": {"A": "TEXT", …}`',
                field="options",
            )
        return Query(text=question, form=wanted)
    if wanted not in (Form.FREE, Form.CHOICE):
        raise InvalidQuery(f"a {wanted} question takes no options", field="options")
    if list(options) != list(_LABELS[: len(options)]) or len(options) < 2:
        raise InvalidQuery(
            f"options must be 2 to 5, labelled {', '.join(_LABELS)} in order "
            f"(got {', '.join(map(repr, options))})",
            field="options",
        )
    chosen = tuple(Option(label=k, text=v.strip()) for k, v in options.items())
    if empty := [option.label for option in chosen if not option.text]:
        raise InvalidQuery(f"option {empty[0]} is empty", field="options")
    if long := [option.label for option in chosen if len(option.text) > MAX_OPTION]:
        raise InvalidQuery(
            f"option {long[0]} must have <= {MAX_OPTION} characters",
            field="options",
        )
    return Query(text=question, form=Form.CHOICE, options=chosen)
