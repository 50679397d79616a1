"""The ``posology`` command: each command with its options and its view."""
