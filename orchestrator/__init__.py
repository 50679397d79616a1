"""The composition root, the pipeline, and the ``posology`` command."""
