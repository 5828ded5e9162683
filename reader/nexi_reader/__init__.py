"""The files of the small model that nexi reads with: E5-small as int8 ONNX, and its vocabulary. Only data."""
