"""``posology webhook``: endpoints that receive messages about jobs, batches, budgets and changed evidence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, TenantOption, errors, print_json
from orchestrator.cli.jobs.store import with_store
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.webhooks.store import WebhookStore
    from posology.published.webhooks.endpoints import WebhookFailures, WebhookOutput

_Found = TypeVar("_Found")
app = typer.Typer(help="Manage webhook endpoints, and list and resend failed messages.")

_LISTED = "endpoint, state, queued, delivered, given up, last attempt, address"
WebhookArgument = Annotated[str, typer.Argument(metavar="ID", help="Endpoint id.")]


@app.command()
def create(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address that receives messages: https://…")
    ],
    *,
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            metavar="TYPE",
            help="Type of message, repeatable: job.ended, row.ended, batch.ended, budget.nearly_spent, answer.affected, watch.changed. "
            "Default: all but row.ended.",
        ),
    ] = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create an endpoint and print its secret. The secret is shown only once."""
    from orchestrator.webhooks.request import WebhookRequest

    with errors(as_json=as_json):
        asked = WebhookRequest.parse({"url": url, **({"events": event} if event else {})})
        made, secret = _with_webhooks(
            tenant,
            lambda webhooks, tenant: webhooks.create(asked.url, tenant=tenant, events=asked.events),
        )
        _print_secret(made, secret, as_json=as_json)


@app.command("list")
def list_(*, tenant: TenantOption = None, as_json: JsonOption = False) -> None:
    """List the endpoints with the numbers of their messages."""
    from posology.published.webhooks.endpoints import WebhookList

    with errors(as_json=as_json):
        found = _with_webhooks(tenant, lambda webhooks, tenant: webhooks.all(tenant=tenant))
        if as_json:
            print_json(WebhookList(webhooks=found))
        else:
            _show(Console(), *found)


@app.command()
def show(
    webhook: WebhookArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Show an endpoint, and the result of the last attempt."""
    with errors(as_json=as_json):
        found = _with_webhooks(
            tenant, lambda webhooks, tenant: webhooks.get(webhook, tenant=tenant)
        )
        if as_json:
            print_json(found)
        else:
            _show(Console(), found)


@app.command()
def delete(
    webhook: WebhookArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Delete an endpoint and the messages that it has not received."""
    with errors(as_json=as_json):
        _with_webhooks(tenant, lambda webhooks, tenant: webhooks.delete(webhook, tenant=tenant))


@app.command()
def rotate(
    webhook: WebhookArgument,
    *,
    overlap: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Seconds for which messages are signed with the old secret, too; 0 if it leaked. Default: 86400.",
        ),
    ] = 86_400.0,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give an endpoint a new secret and print it. The secret is shown only once."""
    with errors(as_json=as_json):
        made, secret = _with_webhooks(
            tenant,
            lambda webhooks, tenant: webhooks.rotate(webhook, tenant=tenant, overlap=overlap),
        )
        _print_secret(made, secret, as_json=as_json)


@app.command()
def pause(
    webhook: WebhookArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Pause an endpoint: its messages wait."""
    _pause(webhook, tenant, paused=True, as_json=as_json)


@app.command()
def resume(
    webhook: WebhookArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Resume a paused endpoint: the messages that waited are sent."""
    _pause(webhook, tenant, paused=False, as_json=as_json)


@app.command("test")
def send_test(
    webhook: WebhookArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Queue a test message and print its id; `webhook show` has the result."""
    from posology.published.webhooks.endpoints import WebhookTest

    with errors(as_json=as_json):
        message = _with_webhooks(
            tenant, lambda webhooks, tenant: webhooks.test(webhook, tenant=tenant)
        )
        if as_json:
            print_json(WebhookTest(message=message))
        else:
            sys.stdout.write(f"{message}\n")


@app.command()
def failures(
    webhook: WebhookArgument,
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=100, help="Maximum number of messages. Default: 20.")
    ] = 20,
    after: Annotated[
        int,
        typer.Option(
            metavar="N", min=-1, max=10**6, help="Number that the previous page ends with."
        ),
    ] = -1,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """List messages that were given up, newest first."""
    with errors(as_json=as_json):
        page = _with_webhooks(
            tenant,
            lambda webhooks, tenant: webhooks.failures(
                webhook, tenant=tenant, after=after, limit=limit
            ),
        )
        if as_json:
            print_json(page)
            return
        _show_failures(Console(), page)
        if page.next is not None:
            sys.stderr.write(f"more: --after {page.next}\n")


@app.command()
def redeliver(
    webhook: WebhookArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Queue the messages that were given up again, and enable the endpoint."""
    from posology.published.webhooks.endpoints import WebhookRedelivery

    with errors(as_json=as_json):
        queued = _with_webhooks(
            tenant, lambda webhooks, tenant: webhooks.redeliver(webhook, tenant=tenant)
        )
        if as_json:
            print_json(WebhookRedelivery(queued=queued))
        else:
            sys.stdout.write(f"{queued:,} messages queued\n")


def _with_webhooks(
    tenant: str | None, work: Callable[[WebhookStore, str], Awaitable[_Found]]
) -> _Found:
    from orchestrator.webhooks.store import WebhookStore

    allowed = load_settings().webhooks_allowed
    return with_store(tenant, lambda store, tenant: work(WebhookStore(store, allowed), tenant))


def _pause(webhook: str, tenant: str | None, *, paused: bool, as_json: bool) -> None:
    with errors(as_json=as_json):
        found = _with_webhooks(
            tenant, lambda webhooks, tenant: webhooks.pause(webhook, tenant=tenant, paused=paused)
        )
        if as_json:
            print_json(found)
        else:
            _show(Console(), found)


def _print_secret(made: WebhookOutput, secret: str, *, as_json: bool) -> None:
    """Print an endpoint. Its secret is the only text on standard output, for scripts."""
    from posology.published.webhooks.endpoints import WebhookCreated

    if as_json:
        print_json(WebhookCreated(**dict(made), secret=secret))
        return
    _show(Console(stderr=True), made)
    sys.stderr.write("secret (shown only once):\n")
    sys.stderr.flush()
    sys.stdout.write(f"{secret}\n")
    sys.stdout.flush()


def _show(console: Console, *found: WebhookOutput) -> None:
    from orchestrator.cli.output.tables import print_form
    from orchestrator.rendering.forms.columns import table
    from orchestrator.rendering.forms.jobs import ENDPOINTS

    print_form(console, table(ENDPOINTS, found, _LISTED))


def _show_failures(console: Console, page: WebhookFailures) -> None:
    from orchestrator.cli.output.tables import print_form
    from orchestrator.rendering.forms.columns import table
    from orchestrator.rendering.forms.jobs import FAILURES

    print_form(console, table(FAILURES, page.failures))
