"""A client of Posology's HTTP API; it needs no other part of the system.

>>> import anyio
>>> from posology.client import Client
>>> async def main(address: str) -> None:
...     async with Client(address, tenant="docs") as client:
...         job = await client.submit("Does aspirin reduce the risk of preeclampsia?", k=8)
...         job = await client.cancel(job.id)
...         print(job.state, job.cancellation.calls_made)
...         async for event in client.events(job.id):
...             print(event.type, event.data["state"])
>>> anyio.run(main, address)
cancelled 0
state queued
state cancelled

Without an event loop:

>>> from posology.client import SyncClient
>>> with SyncClient(address, tenant="docs") as client:
...     job = client.submit("Does aspirin reduce the risk of preeclampsia?", k=8)
...     print(client.cancel(job.id).state)
cancelled
"""

from posology.client.client import Client
from posology.client.sync import SyncClient
from posology.errors import ApiError, ApiUnreachable

__all__ = ["ApiError", "ApiUnreachable", "Client", "SyncClient"]
