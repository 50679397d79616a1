"""Re-rankers that the kernel has; compressors that re-rank are with the compressors."""
