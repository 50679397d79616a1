"""ONNX exports of encoders: export, check, quantisation and inference."""
