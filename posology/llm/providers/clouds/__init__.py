"""Clouds that sell the models of OpenAI and Anthropic, through the clients of these two's SDKs."""
