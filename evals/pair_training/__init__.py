"""Training of a cross-encoder that says whether a passage supports a sentence; see `train`."""
