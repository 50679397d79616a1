"""What compressors leave, lose and cost."""
