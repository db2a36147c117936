"""EfficientNet-Lite0 with ImageNet weights, as an ONNX file in half precision.

Input "pictures" (batch, 3, 224, 224), float32: red, green and blue as (byte - 127) / 128, from the shorter side scaled
to 256 and the centre cut out. Outputs "features" (batch, 1280), the mean over places before the classifier, and
"classes" (batch, 1000), logits of the ImageNet classes.
"""

from pathlib import Path

MODEL_FILE = Path(__file__).with_name("efficientnet_lite0.onnx")
"""The ONNX file."""
