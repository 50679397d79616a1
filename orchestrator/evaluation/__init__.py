"""Evaluation: suites of questions with known answers, asked by policies and models through a tenant's budget."""
