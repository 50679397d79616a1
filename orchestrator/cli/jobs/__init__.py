"""``posology submit``, ``batch`` and ``jobs``: work in the queue."""
