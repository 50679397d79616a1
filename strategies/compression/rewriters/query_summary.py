"""The query-aware summary by a model that is paid for: CQSumDP's idea (Laskar et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from posology.types import Excerpt, Query
from prompts.summarise import SummaryReply, render_summarise
from prompts.template import Rendered
from strategies.compression.rewriters.base import PassageRewriter, Text

NAME = "query_summary"
#: Share of the words that is asked for where nobody says: LeanContext's tables 1 and 2 show 17 and 10 % left.
DEFAULT_KEEP = 0.2


class QuerySummary(PassageRewriter):
    """Asks for what the passages say on the question; those that say nothing on it are left out.

    The words that are allowed are those of all passages together: how they are spread is the model's choice.
    """

    name = NAME
    default_keep = DEFAULT_KEEP
    schema = SummaryReply
    of_all = False

    def render(self, query: Query, excerpts: Sequence[Excerpt], words: Sequence[int]) -> Rendered:
        """The question, the passages, and how many words all summaries may have."""
        return render_summarise(query, excerpts, words=sum(words))

    def read(self, reply: BaseModel) -> Iterable[Text]:
        """Each passage's summary."""
        if isinstance(reply, SummaryReply):
            for one in reply.summaries:
                yield Text(label=one.passage, text=one.summary)
