"""One example for the help of each command; a test parses them all."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: by the command's path
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "ask": 'ask "Does aspirin prevent stroke?" ./papers --since 2015 --why',
        "table": "table ./papers -o table.xlsx --fields fields.toml",
        "search": 'search "aspirin stroke" --index ./index --k 20 --format bibtex',
        "show": "show pmid:10051933 --index ./index",
        "demo": "demo --all",
        "ingest": "ingest ./papers abstracts.jsonl --index ./index",
        "ingest-uploads": "ingest-uploads --index ./index",
        "uploads list": "uploads list",
        "uploads cancel": "uploads cancel ID",
        "fetch": 'fetch "aspirin AND stroke" --max 200 --index ./index',
        "sync": "sync ./pubmed --index ./index --workers 4",
        "index versions": "index versions --index ./index",
        "index info": "index info --index ./index --all",
        "index upgrade": "index upgrade --index ./index",
        "index notices": "index notices retraction_watch.csv --index ./index",
        "mcp": "mcp --index ./index",
        "submit": 'submit "Does aspirin prevent stroke?" --key trial-7 --wait',
        "batch": "batch questions.jsonl --output answers.jsonl --max-cost 0.02",
        "batches list": "batches list --state running",
        "batches show": "batches show ID",
        "batches cancel": "batches cancel ID",
        "jobs list": "jobs list --failed --limit 50",
        "jobs show": "jobs show ID --why",
        "jobs watch": "jobs watch ID",
        "jobs cancel": "jobs cancel ID",
        "jobs retry": "jobs retry --all-failed",
        "webhook create": "webhook create https://example.org/posology --event job.ended",
        "webhook list": "webhook list",
        "webhook show": "webhook show ID",
        "webhook delete": "webhook delete ID",
        "webhook rotate": "webhook rotate ID --overlap 3600",
        "webhook pause": "webhook pause ID",
        "webhook resume": "webhook resume ID",
        "webhook test": "webhook test ID",
        "webhook failures": "webhook failures ID --limit 50",
        "webhook redeliver": "webhook redeliver ID",
        "answers affected": "answers affected --days 30 --index ./index",
        "models list": "models list",
        "models check": "models check openai:gpt-6-luna --max-cost 0.05",
        "models show": "models show openai:gpt-6-luna",
        "estimate": "estimate questions.jsonl --model openai:gpt-6-luna",
        "spend": "spend --by model --since 2026-01-01 --format csv",
        "ledger verify": "ledger verify --all",
        "ledger rebuild": "ledger rebuild --tenant acme",
        "ledger settle-orphans": "ledger settle-orphans --tenant acme --hours 48",
        "ledger export": "ledger export ledger.csv --since 2026-01-01",
        "ledger archive": "ledger archive --before 2026-01-01 --out ./archive",
        "ledger mirror": "ledger mirror --to postgresql://posology@db/books --all",
        "reconcile": "reconcile usage.json costs.json --provider openai --all",
        "policy train": "policy train --questions train.jsonl --out table.json --dry-run",
        "policy calibrate": "policy calibrate --questions gold.jsonl --out calibration.json",
        "policy show": "policy show table.json --png table.png",
        "policy feedback": "policy feedback ID --score 0.8",
        "policy promote": "policy promote table.json --out better.json",
        "policy replay": "policy replay ID --index ./index",
        "policy compare": "policy compare router fixed:k=8 --questions questions.jsonl",
        "eval": "eval pubmedqa:ori_pqal.json --own-passages --out runs/first",
        "compressor label": "compressor label --questions train.jsonl --out labels.jsonl",
        "compressor train": "compressor train --labels labels.jsonl --out pruner --epochs 3",
        "compressor dataset": "compressor dataset --out pairs.jsonl --index ./index",
        "compressor finetune": "compressor finetune --dataset pairs.jsonl --out summarizer",
        "init": "init",
        "config show": "config show --changed",
        "keys set": "keys set openai",
        "keys list": "keys list",
        "keys remove": "keys remove openai",
        "doctor": "doctor --index ./index",
        "up": "up --index ./index --workers 2",
        "api": "api --port 8000",
        "logs": "logs --follow --job ID",
        "backup": "backup ./backups --keep 14 --every 24",
        "tenants create": "tenants create acme --day 5 --job 0.10",
        "tenants list": "tenants list",
        "tenants show": "tenants show acme",
        "tenants set": "tenants set acme --month 100",
        "tenants disable": "tenants disable acme",
        "tenants enable": "tenants enable acme",
        "tenants revoke-key": "tenants revoke-key acme 5f0c2a9b1d3e",
        "tenants rotate-key": "tenants rotate-key acme --grace 86400",
        "schema": "schema ask",
    }
)


def epilog(path: str) -> str | None:
    """Return the end of a command's help; ``None``: it has no example."""
    example = EXAMPLES.get(path)
    # the \b keeps the line in one piece
    return None if example is None else f"\b\nExample:\n  posology {example}"
