"""The Celery side: the application, its tasks, and what a worker process holds."""
