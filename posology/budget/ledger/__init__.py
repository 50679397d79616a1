"""Money that is set aside, settled and written down."""
