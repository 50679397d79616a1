"""What policies learn, outside of them: kept in files, shown, drawn, changed by feedback."""
