"""Where knowledge is kept, and what turns text into vectors: one file for each way."""
