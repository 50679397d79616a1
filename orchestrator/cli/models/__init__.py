"""Commands about language models: what each can do, and what it costs."""
