"""Idle connections: those that a server has closed are found without asking httpcore's own way."""

from __future__ import annotations

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from posology.network.streams import _Stream, check_quickly
from tests.support.private_parts import BACKEND

pytestmark = pytest.mark.anyio

_REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def test_a_connection_that_its_server_closed_while_idle_is_not_used_again() -> None:
    opened, leaving = list[SocketStream](), anyio.Event()

    async def serve(stream: SocketStream) -> None:
        opened.append(stream)
        async with stream:
            for _ in range(2):
                await stream.receive()
                await stream.send(_REPLY)
                if len(opened) == 2:
                    return
            await leaving.wait()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        check_quickly(httpx2.AsyncClient(trust_env=False)) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, serve)
        url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        for _ in range(2):
            stream = (await client.get(url)).extensions["network_stream"]
        assert isinstance(stream, _Stream), BACKEND.changed
        assert len(opened) == 1
        assert not stream.get_extra_info("is_readable")
        leaving.set()
        with anyio.fail_after(90):
            while not stream.get_extra_info("is_readable"):  # noqa: ASYNC110 - the kernel changes it
                await anyio.sleep(0.01)
        assert (await client.get(url)).text == "ok"
        assert len(opened) == 2
        # a closed socket has no descriptor
        assert stream.get_extra_info("is_readable")
        group.cancel_scope.cancel()
