"""A rewriter and a local writer of summaries, for tests of what spends to compress."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from posology.seams import Complete
from posology.types import (
    Call,
    Compressed,
    Excerpt,
    Message,
    PromptId,
    Retrieval,
    Role,
    Stage,
    Task,
    Usage,
)

PROMPT = PromptId(name="short", digest="0" * 16)


class Summaries(BaseModel):
    """A summary for each passage, in their order; an empty one leaves a passage out."""

    summaries: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Short:
    """A :class:`~posology.seams.Rewriter`: one call that sums up all passages."""

    name: str = "short"
    #: of the words, that it says it leaves
    share: float = 0.25
    max_tokens: int = 200
    #: first sentences of each passage that it leaves whole
    whole: int = 0

    def calls(self, task: Task, keep: float | None) -> tuple[Call, ...]:
        """The one call."""
        if not task.retrieval.passages:
            return ()
        excerpts = tuple(
            Excerpt(passage=p.passage, sentences=p.sentences) for p in task.retrieval.passages
        )
        text = "\n".join(e.passage.text for e in excerpts)
        messages = (Message(role=Role.USER, content=f"Sum up, keeping {keep}:\n{text}"),)
        return (
            Call(
                stage=Stage.COMPRESS,
                model=task.model,
                query=task.query,
                excerpts=excerpts,
                messages=messages,
                prompt=PROMPT,
                schema=Summaries,
                max_tokens=self.max_tokens,
                strategy="compressed",
            ),
        )

    def expected_ratio(self, keep: float | None) -> float:
        """What is kept, or its own share."""
        return self.share if keep is None else keep

    async def __call__(self, task: Task, keep: float | None, complete: Complete) -> Compressed:
        """Show what was written."""
        usage: Usage | None = Usage()
        said: list[str] = []
        for call in self.calls(task, keep):
            reply = await complete(call)
            assert isinstance(reply.parsed, Summaries)
            said += reply.parsed.summaries
            usage = reply.usage
        passages = task.retrieval.passages
        kept = self.whole * len(passages)
        return Compressed(
            excerpts=tuple(
                Excerpt(passage=p.passage, sentences=p.sentences[: self.whole], summary=text)
                for p, text in zip(passages, said, strict=False)
                if text
            ),
            kept=kept,
            sentences=sum(len(p.sentences) for p in passages),
            compressor=self.name,
            usage=usage,
        )


class Stated:
    """What a :class:`~posology.seams.Compressor` for a test states of itself, where that is no matter."""

    extractive = True

    def expected_ratio(self, keep: float | None) -> float:
        """All."""
        del keep
        return 1.0

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """None."""
        del retrieval, keep
        return 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Summing:
    """A :class:`~posology.seams.Compressor` whose summaries a local model wrote, which takes its time."""

    text: str = "It helps."
    name: str = "summing"
    extractive: bool = False
    takes: float = 1.0
    share: float = 0.5

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """The same summary for all."""
        del keep
        return Compressed(
            excerpts=tuple(
                Excerpt(passage=p.passage, sentences=(), summary=self.text)
                for p in retrieval.passages
            ),
            kept=0,
            sentences=sum(len(p.sentences) for p in retrieval.passages),
            compressor=self.name,
        )

    def expected_ratio(self, keep: float | None) -> float:
        """What is kept, or its own share."""
        return self.share if keep is None else keep

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """So long for each passage."""
        del keep
        return self.takes * len(retrieval.passages)
