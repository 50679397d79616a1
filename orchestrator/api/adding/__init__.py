"""Literature that tenants add over HTTP: files, and what a service sends for a query."""
