"""Conversion of the weights of EfficientNet-Lite0 from a torch file to ONNX, without torch."""
