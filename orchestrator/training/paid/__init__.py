"""Paid runs: every reply is kept, and an interrupted run resumes."""
