"""``posology compressor``: data sets, labels and training of compressors."""
