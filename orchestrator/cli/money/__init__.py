"""``posology estimate``, ``spend``, ``ledger``, ``reconcile`` and ``tenants``."""
