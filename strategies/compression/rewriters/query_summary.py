"""Query-aware summary by a paid model: CQSumDP's idea (Laskar et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from posology.types import Excerpt, Task
from prompts.rewrite import SummaryReply, render_summarise, summary_schema
from prompts.template import Rendered
from strategies.compression.rewriters.base import PassageRewriter, Text

NAME = "query_summary"
#: Default share of the words to ask for; LeanContext's tables 1 and 2 report 17 and 10 % left.
DEFAULT_KEEP = 0.2


class QuerySummary(PassageRewriter):
    """Rewriter that asks for what the passages say on the question; passages that say nothing on it are omitted.

    The word limit is for all passages together; the model distributes it.
    """

    name = NAME
    default_keep = DEFAULT_KEEP
    of_all = False

    def render(self, task: Task, excerpts: Sequence[Excerpt], words: Sequence[int]) -> Rendered:
        """Render the question, the passages and the word limit of all summaries."""
        return render_summarise(task.query, excerpts, words=sum(words), own=task.prompts)

    def schema(self, passages: int) -> type[SummaryReply]:
        """Return the form of the reply with the passages' labels."""
        return summary_schema(passages)

    def read(self, reply: BaseModel) -> Iterable[Text]:
        """Yield each passage's summary."""
        if isinstance(reply, SummaryReply):
            for one in reply.summaries:
                yield Text(label=one.passage, text=one.summary)
