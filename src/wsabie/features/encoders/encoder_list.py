"""Image encoders by name: licence, size, files and use of each."""

from typing import Literal, NamedTuple

Pooling = Literal["mean", "first"]
"""Joining of the tokens of a picture."""


class ImageEncoder(NamedTuple):
    """Image encoder that features can be made with.

    Attributes
    ----------
    name : str
    purpose : str
    licence : str
        SPDX identifier of the weights.
    megabytes : float
        Size of the ONNX files.
    dimensions : int
    text : str or None
        Languages of its text tower; None without one.
    repository : str or None
        Repository on the Hugging Face Hub; None: a distribution of this project.
    network : str
        ONNX file of the pictures in the repository.
    output : str
        Output of the network.
    pooling : {"mean", "first"}
        Joining of tokens in that output.
    is_verified : bool
        True if this project has run the real weights. The facts of others come from their publishers.
    """

    name: str
    purpose: str
    licence: str
    megabytes: float
    dimensions: int
    text: str | None
    repository: str | None = None
    network: str = "onnx/vision_model.onnx"
    output: str = "image_embeds"
    pooling: Pooling = "mean"
    is_verified: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the repository that are needed."""
        return () if self.repository is None else (self.network, PREPROCESSOR_CONFIG)


PREPROCESSOR_CONFIG = "preprocessor_config.json"
PACKAGED_ENCODER = ImageEncoder("lite0", "objects in photos, fast", "Apache-2.0", 9.3, 1280, None, is_verified=True)
_DINO = ("onnx/model.onnx", "last_hidden_state")
HUB_ENCODERS = {
    encoder.name: encoder
    for encoder in (
        ImageEncoder("dinov2-small", "likeness", "Apache-2.0", 88, 384, None, "Xenova/dinov2-small", *_DINO, "first"),
        ImageEncoder("dinov2-base", "fine kinds", "Apache-2.0", 346, 768, None, "Xenova/dinov2-base", *_DINO, "first"),
        ImageEncoder("clip-base", "photos and words", "MIT", 352, 512, "English", "Xenova/clip-vit-base-patch32"),
        ImageEncoder(
            "siglip2-base", "photos and words", "Apache-2.0", 372, 768, "many",
            "onnx-community/siglip2-base-patch16-224-ONNX", output="pooler_output",
        ),
    )
}  # fmt: skip
"""Encoders of the Hugging Face Hub, by name."""
ENCODERS = (PACKAGED_ENCODER, *HUB_ENCODERS.values())
"""All encoders; the one that needs no download comes first."""
