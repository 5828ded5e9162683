"""What turns texts into vectors: one file for each way, all behind the Embedder port."""
