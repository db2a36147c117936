"""EfficientNet-Lite0 with ImageNet weights, as an ONNX file in half precision.

Input "pictures" (batch, 3, 224, 224), float32: red, green and blue as (byte - 127) / 128, from the shorter side scaled
to 256 and the centre cut out. Outputs "features" (batch, 1280), the mean over places before the classifier, and
"classes" (batch, 1000), logits of the ImageNet classes.
"""

from pathlib import Path

MODEL_FILE = Path(__file__).with_name("efficientnet_lite0.onnx")
"""The ONNX file."""

CLASS_NAMES_FILE = Path(__file__).with_name("class_names.txt")
"""Names of the classes in WordNet, a line for each in the order of the output."""

WORD_PIECES_FILE = Path(__file__).with_name("word_pieces.txt")
"""Vocabulary of the tokenizer of BERT in lower case, a piece a line, for a sentence encoder beside the network."""
