"""The prompts that shorten a passage to a share of its length (TCRA-LLM, section 4.2.1 and figure 4).

The paper's loop in words of our own: ask for a share of the length with the first sentence kept; where the reply
is too long or too short, say so in the same conversation, and ask again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from posology.types import Excerpt, Message, Role
from prompts.fence import fence
from prompts.template import Rendered, render


@dataclass(frozen=True, kw_only=True, slots=True)
class Length:
    """Length of a shortened passage, in words separated by white space."""

    #: words of the passage, 1 or more
    words: int
    #: share of the words to keep (0 < x < 1)
    share: float
    #: tolerated deviation of a reply, as a share of the passage's words, 0 or more
    tolerance: float

    @property
    def target(self) -> int:
        """Words to ask for."""
        return max(1, round(self.share * self.words))

    @property
    def least(self) -> int:
        """Fewest accepted words."""
        return max(1, math.ceil((self.share - self.tolerance) * self.words - 1e-9))

    @property
    def most(self) -> int:
        """Most accepted words; fewer than the passage has, if it has at least two."""
        most = math.floor((self.share + self.tolerance) * self.words + 1e-9)
        return max(self.least, min(most, self.words - 1))


def render_shorten(excerpt: Excerpt, length: Length) -> Rendered:
    """Render the messages of the first request."""
    fenced = fence([excerpt])
    return render(
        "shorten",
        words=str(length.words),
        share=f"{100 * length.share:g}",
        target=str(length.target),
        least=str(length.least),
        most=str(length.most),
        passage=fenced.text,
        code=fenced.code,
    )


def render_again(
    before: tuple[Message, ...], reply: str, length: Length, *, added: tuple[str, ...] = ()
) -> Rendered:
    """Render the continued conversation, with a complaint about the last reply.

    Args:
        before: messages that the reply is to.
        reply: the last reply.
        length: requested length.
        added: words that the reply has and the passage has not; empty: the length is wrong.
    """
    words = len(reply.split())
    if added:
        named = ", ".join(added)
        complaint = f"Your reply holds what the passage does not have in this form: {named}."
        direction = "without that"
    else:
        long = words > length.target
        complaint = f"Your reply has {words} words, which is too {'long' if long else 'short'}."
        direction = "shorter" if long else "longer"
    again = render(
        "shorten_again",
        complaint=complaint,
        direction=direction,
        target=str(length.target),
        least=str(length.least),
        most=str(length.most),
    )
    said = Message(role=Role.ASSISTANT, content=reply or "(nothing)")
    return Rendered(messages=(*before, said, again.messages[-1]), prompt=again.prompt)
