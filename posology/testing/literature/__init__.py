"""A stub of the literature services: E-utilities and Europe PMC in the forms that their documentation describes."""
