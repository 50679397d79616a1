"""A loop beside a worker's units, which nothing that fails in it ends."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from posology.errors import StoreUnavailable

logger = logging.getLogger(__name__)


async def again(step: Callable[[], Awaitable[None]], pause: float = 0.0) -> None:
    """Take a step again and again, until this is cancelled.

    Args:
        step: what goes wrong in it is logged, and it is taken again a second later.
        pause: seconds between two steps, for a step that does not wait by itself.
    """
    while True:
        try:
            await step()
        except StoreUnavailable as error:
            logger.warning("%s", error)
            await anyio.sleep(1.0)
        except Exception:
            logger.exception("a defect of Posology in %s", step)
            await anyio.sleep(1.0)
        if pause:
            await anyio.sleep(pause)
