"""A short run as the driver of ``evals.fire`` records one, without a fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evals.fire.checker import Run
from evals.fire.checker.caps import windows

ALPHA, BETA = "worda1a1a1a1a1a1", "wordb2b2b2b2b2b2"
WORDS = {"alpha": ALPHA, "beta": BETA}
#: nano-dollars
CAP, BOUND, COST = 1_000_000, 600_000, 100_000
TEXT = "Aspirin lowered the risk of stroke. It raised that of bleeding."
DAY = "2026-01-15"
#: digests of price lists before and after a change, and of later ones, by which all costs twice, three
#: times and half as much as by the first
LISTS = {
    "11111111": (100, 400),
    "22222222": (200, 800),
    "33333333": (300, 1_200),
    "44444444": (50, 200),
}
BEFORE, AFTER, LATER, LATEST = LISTS


class Recorder:
    """Writes what a driver, a provider and Redis would."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.books: list[dict[str, Any]] = []
        self.ledger: list[dict[str, Any]] = []
        self.monitor: list[dict[str, Any]] = []

    @property
    def run(self) -> Run:
        return Run(records=self.records, books=self.books, ledger=self.ledger, monitor=self.monitor)

    def write(self, kind: str, **fields: Any) -> int:
        number = len(self.records) + 1
        self.records.append({"n": number, "at": float(number), "kind": kind, **fields})
        return number

    def exchange(self, tenant: str, body: Any, *, status: int = 200, **request: Any) -> None:
        place = self.write("request", tenant=tenant, way="http", **request)
        self.write("reply", to=place, status=status, body=body, words=[WORDS[tenant]])

    def attempt(
        self, name: str, tenant: str, *closes: tuple[str, int, bool], prices: str = BEFORE
    ) -> None:
        """An attempt that is reserved and then closed: kind of entry, nano-dollars charged since the last, known."""
        self.entry(tenant, name, "reserve", reserved=BOUND, spent=0)
        freed = -BOUND
        for kind, spent, known in closes:
            outcome = {"outcome": "ok" if known else "lost", "bound": str(BOUND), "charged": "0"}
            outcome["prices"] = f"table 1 + overrides {prices}"
            self.entry(tenant, name, kind, reserved=freed, spent=spent, known="01"[known], **outcome)  # fmt: skip
            freed = 0

    def entry(self, tenant: str, name: str, kind: str, *, day: str = DAY, **fields: Any) -> None:
        place = f"{1_000 + len(self.ledger)}-0"
        texts = {key: str(value) for key, value in fields.items()}
        entry = {"kind": kind, "id": name, "day": day, **texts}
        self.ledger.append({"tenant": tenant, "place": place, "fields": entry})
        amounts = {"spent": fields["spent"], "reserved": fields["reserved"]}
        changes = {f"{what}:{w}": n for what, n in amounts.items() for w in windows(day) if n}
        self.monitor.append({"kind": "change", "at": 0.0, "tenant": tenant, "changes": changes})

    def billed(
        self, name: str, tenant: str, digest: str, *, finished: bool = True, prices: str = BEFORE
    ) -> None:
        now = float(len(self.records))
        tokens = [200, 200] if finished else None
        cost = sum(200 * price for price in LISTS[prices])
        request = {
            "id": f"req_{name}", "client_id": name, "finished": finished, "played": "reply",
            "nano": cost if finished else None, "tokens": tokens, "share": 1, "prices": list(LISTS).index(prices),
            "arrived": now, "ended": now, "digest": digest, "words": [WORDS[tenant]],
        }  # fmt: skip
        self.books.append(request)

    def listed(self, prices: str) -> None:
        """The operator's file holds a list."""
        price_in, price_out = LISTS[prices]
        number = list(LISTS).index(prices)
        self.write("prices", number=number, digest=prices, input=price_in, output=price_out)

    def snapshot(self, tenant: str, caps: Mapping[str, int] | None = None) -> None:
        mine = [entry for entry in self.ledger if entry["tenant"] == tenant]
        counters: dict[str, int] = {}
        for entry in mine:
            for window in windows(entry["fields"]["day"]):
                for what in ("spent", "reserved"):
                    name = f"{what}:{window}"
                    counters[name] = counters.get(name, 0) + int(entry["fields"][what])
        self.monitor.append(
            {
                "kind": "snapshot", "at": 0.0, "tenant": tenant, "counters": counters, "caps": caps or {"total": CAP},
                "upto": mine[-1]["place"] if mine else None, "gapless": bool(mine),
            }
        )  # fmt: skip


def answer() -> dict[str, Any]:
    quote = {"passage": {"id": "doc:1"}, "start": 0, "end": 35, "quote": TEXT[:35]}
    return {"status": "answered", "answer": TEXT[:35], "index": "index@2", "evidence": [quote]}


def view(job: str, state: str) -> dict[str, Any]:
    return {"id": job, "state": state, "result": answer() if state == "succeeded" else None}


def events(*states: str) -> dict[str, Any]:
    return {"events": [{"type": "state", "data": {"state": state}} for state in states]}


def upload(state: str, error: str | None = None) -> dict[str, Any]:
    failure = error and {"type": error, "message": "the file cannot be read"}
    return {"id": "ingest_1", "state": state, "error": failure}


def clean() -> Recorder:
    """Two tenants, three jobs, a batch and an upload; an attempt whose reply was lost, and one that was reported late.

    Prices change, and one attempt is charged by the new ones and billed by the old.
    """
    run = Recorder()
    run.listed(BEFORE)
    run.write("document", id="doc:1", text=TEXT)
    for tenant, word in WORDS.items():
        run.write("tenant", tenant=tenant, word=word)
        run.snapshot(tenant)
    run.exchange("alpha", view("job_1", "queued"), status=202, key="k1")
    # the same request once more
    run.exchange("alpha", view("job_1", "running"), key="k1")
    run.exchange("alpha", events("queued", "running", "succeeded"), events_of="job_1", after=None)
    run.exchange("alpha", view("job_1", "succeeded"))
    run.exchange("alpha", view("job_1", "succeeded"))
    passage = {"passage": {"id": "doc:1"}, "text": TEXT}
    run.exchange("alpha", passage, passage_of="index@2")
    # cancelled, and then read again
    run.exchange("beta", view("job_2", "queued"), status=202, key="k2")
    run.exchange("beta", view("job_2", "cancelled"))
    # failed, and retried
    run.exchange("beta", view("job_3", "queued"), status=202, key="k3")
    run.exchange("beta", view("job_3", "failed"))
    run.exchange("beta", view("job_3", "queued"), retries=["job_3"])
    run.exchange("beta", view("job_3", "succeeded"))
    run.exchange("beta", {"id": "batch_1", "total": 1}, status=202, key="k4")
    row = {"row": 0, "job": "job_4", "state": "succeeded", "result": answer(), "error": None}
    run.exchange("beta", {"rows": [row]}, rows_of="batch_1")
    run.exchange("beta", upload("waiting"), status=202)
    run.exchange("beta", upload("succeeded"))
    run.write("command", command="sync", status=5)
    run.attempt("a1", "alpha", ("settle", COST, True))
    run.billed("a1", "alpha", "d1")
    # its reply was lost, and it was tried again
    run.attempt("a2", "beta", ("lose", BOUND, False))
    run.billed("a2", "beta", "d2")
    run.attempt("a3", "alpha", ("lose", BOUND, False), ("correct", COST - BOUND, True))
    run.billed("a3", "alpha", "d3")
    # not billed
    run.attempt("a4", "alpha", ("settle", 0, True))
    run.billed("a4", "alpha", "d4", finished=False)
    run.listed(AFTER)
    run.attempt("a5", "alpha", ("settle", 2 * COST, True), prices=AFTER)
    run.billed("a5", "alpha", "d5")
    run.write("priced", number=1)
    for tenant in WORDS:
        run.snapshot(tenant)
    run.write("drained")
    return run
