"""A cross-encoder on this machine that says whether a passage supports a sentence: the PairModel port over ONNX Runtime.

`onnx` runs the model of a folder, `folder` pins and installs one, and `downloads` fetches those that are published. What is
made of a score, `nexi.checking` decides.
"""
