"""A cross-encoder on this machine that says whether a passage supports a sentence: the PairModel port over ONNX Runtime."""
