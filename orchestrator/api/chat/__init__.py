"""Questions and answers in OpenAI's form: chat completions and models."""
