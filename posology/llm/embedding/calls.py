"""Texts to calls: several a request, none longer than a model takes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from posology.budget.bounds.texts import words_bound
from posology.llm.embedding.models import EmbeddingModel
from posology.types import Call, Message, PromptId, Query, Role, Stage

#: Texts of one request, and their tokens by their bounds, at most. OpenAI takes 2,048 and 300,000; but a request
#: is reserved as a whole, and is to fit into a tenant's minute.
TEXTS, TOKENS = 256, 32_000
#: what is sent for a text without a word, which providers refuse
EMPTY = "(empty)"
#: texts are sent as they are: the template is empty
_PROMPT = PromptId(name="embed", digest=hashlib.sha256(b"").hexdigest()[:16])


def calls_for(texts: Sequence[str], model: EmbeddingModel) -> Iterator[Call]:
    """The calls that bring the vectors of texts, in their order; see :func:`sent` for what of each is sent."""
    waiting: list[str] = []
    tokens = 0
    for text in texts:
        own = words_bound(text)
        if waiting and (len(waiting) >= TEXTS or tokens + own > TOKENS):
            yield _call(waiting, model)
            waiting, tokens = [], 0
        waiting.append(text)
        tokens += own
    if waiting:
        yield _call(waiting, model)


def sent(text: str, limit: int) -> str:
    """What is sent of a text: its beginning, as long as a bound on its tokens is at most ``limit``."""
    if not text.strip():
        return EMPTY
    if words_bound(text) <= limit:
        return text
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if words_bound(text[:middle]) <= limit else (low, middle - 1)
    return text[:low] if text[:low].strip() else EMPTY


def _call(texts: Sequence[str], model: EmbeddingModel) -> Call:
    return Call(
        stage=Stage.EMBED,
        model=model.model,
        query=Query(text=texts[0]),
        excerpts=(),
        messages=tuple(Message(role=Role.USER, content=text) for text in texts),
        prompt=_PROMPT,
        max_tokens=0,
        dimensions=model.dim if model.asked else None,
    )
