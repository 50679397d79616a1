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
    """How long a shortened passage is to be, in words as white space parts them."""

    #: of the passage, 1 or more
    words: int
    #: of them, that are wanted, over 0 and under 1
    share: float
    #: by how much of the passage's words a reply may be off, 0 or more
    tolerance: float

    @property
    def target(self) -> int:
        """Words that are wanted."""
        return max(1, round(self.share * self.words))

    @property
    def least(self) -> int:
        """Fewest words that are taken."""
        return max(1, math.ceil((self.share - self.tolerance) * self.words - 1e-9))

    @property
    def most(self) -> int:
        """Most words that are taken; always fewer than the passage has, where it has two."""
        most = math.floor((self.share + self.tolerance) * self.words + 1e-9)
        return max(self.least, min(most, self.words - 1))


def render_shorten(excerpt: Excerpt, length: Length) -> Rendered:
    """Render the messages that ask for the first time."""
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
    """Render a conversation that goes on: what was said so far, and what is wrong with the last reply.

    Args:
        before: the messages that it replied to.
        reply: what was replied.
        length: that was asked for.
        added: what the reply says and the passage does not; empty: its length is wrong.
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
