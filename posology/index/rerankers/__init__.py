"""Re-rankers; compressors that re-rank are among the compressors."""
