"""The console: pages of the API process for a browser, server-rendered, by the stores that its operations use."""
