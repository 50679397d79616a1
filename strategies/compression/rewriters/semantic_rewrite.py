"""Semantic compression by a model that is paid for, whatever is asked (Gilbert et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from posology.types import Excerpt, Query
from prompts.rewrite import RewriteReply, render_rewrite
from prompts.template import Rendered
from strategies.compression.rewriters.base import PassageRewriter, Text

NAME = "semantic_rewrite"
#: Share of the words that is asked for where nobody says: LeanContext's tables 1 and 2 show 61 and 31 % left.
DEFAULT_KEEP = 0.4


class SemanticRewrite(PassageRewriter):
    """Asks for every passage in as few words as can hold what it means.

    The model is not told the question. The call carries it all the same, for the account.
    """

    name = NAME
    default_keep = DEFAULT_KEEP
    schema = RewriteReply
    of_all = True

    def render(
        self,
        query: Query,  # noqa: ARG002 - it is written for any question
        excerpts: Sequence[Excerpt],
        words: Sequence[int],
    ) -> Rendered:
        """The passages, and how many words each may have."""
        return render_rewrite(excerpts, words=words)

    def read(self, reply: BaseModel) -> Iterable[Text]:
        """Each passage's new wording."""
        if isinstance(reply, RewriteReply):
            for one in reply.passages:
                yield Text(label=one.passage, text=one.text)
