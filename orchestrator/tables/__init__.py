"""Evidence tables: what is asked, the documents, the paid run, and what it found."""
