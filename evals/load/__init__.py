"""The stack under load: queue, batch lane, tenants, console, first answers."""
