"""Paid runs: plan, price, confirm, buy and keep every reply; an interrupted run resumes."""
