"""Semantic compression by a paid model, regardless of the question (Gilbert et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from posology.types import Excerpt, Task
from prompts.rewrite import RewriteReply, render_rewrite, rewrite_schema
from prompts.template import Rendered
from strategies.compression.rewriters.base import PassageRewriter, Text

NAME = "semantic_rewrite"
#: Default share of the words to ask for; LeanContext's tables 1 and 2 report 61 and 31 % left.
DEFAULT_KEEP = 0.4


class SemanticRewrite(PassageRewriter):
    """Rewriter that asks for every passage in as few words as preserve its meaning.

    The prompt does not contain the question. The call still carries it, for the ledger.
    """

    name = NAME
    default_keep = DEFAULT_KEEP
    of_all = True

    def render(self, task: Task, excerpts: Sequence[Excerpt], words: Sequence[int]) -> Rendered:
        """Render the passages and the word limit of each."""
        return render_rewrite(excerpts, words=words, own=task.prompts)

    def schema(self, passages: int) -> type[RewriteReply]:
        """Return the form of the reply with the passages' labels."""
        return rewrite_schema(passages)

    def read(self, reply: BaseModel) -> Iterable[Text]:
        """Yield each passage's new wording."""
        if isinstance(reply, RewriteReply):
            for one in reply.passages:
                yield Text(label=one.passage, text=one.text)
