"""``posology ask`` and ``posology search``: answer a question through a running stack or in this process."""
