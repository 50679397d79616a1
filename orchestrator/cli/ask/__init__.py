"""``posology ask`` and ``posology search``: questions that this process answers."""
