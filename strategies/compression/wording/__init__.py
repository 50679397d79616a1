"""Words, phrases, figures and drug names: the pieces that compressors keep or drop."""
