"""ONNX exports of encoders: made, checked, quantised, run."""
