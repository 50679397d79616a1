"""Who spends: limits, API keys, and the share of a minute."""
