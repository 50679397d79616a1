"""The providers' adapters, and the HTTP that they share."""
