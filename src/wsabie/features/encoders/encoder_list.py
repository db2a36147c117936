"""Image encoders by name: licence, size, files and use of each."""

from typing import Literal, NamedTuple

Pooling = Literal["mean", "first"]
"""Joining of the tokens of a picture."""


class TextTower(NamedTuple):
    """Text tower of an image encoder, which places words among pictures.

    Attributes
    ----------
    output : str
        Output of its network.
    length : int
        Maximum number of tokens; the rest is cut off.
    is_padded : bool
        True if texts are in lower case, with padding up to `length`, as in the training of SigLIP 2.
    slope, offset : float
        Scale and bias of a cosine's logit, by the publishers.
    """

    output: str
    length: int
    is_padded: bool
    slope: float
    offset: float

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the repository that are needed beside those for pictures."""
        return (TEXT_NETWORK, TOKENIZER)


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
    tower : TextTower or None
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
    tower: TextTower | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the repository that are needed."""
        return () if self.repository is None else (self.network, PREPROCESSOR_CONFIG)


PREPROCESSOR_CONFIG = "preprocessor_config.json"
TEXT_NETWORK, TOKENIZER = "onnx/text_model.onnx", "tokenizer.json"
_CLIP = TextTower("text_embeds", 77, False, 100.0, -28.0)
_SIGLIP2 = TextTower("pooler_output", 64, True, 112.0, -16.8)
PACKAGED_ENCODER = ImageEncoder("lite0", "objects in photos, fast", "Apache-2.0", 9.3, 1280, None, is_verified=True)
_DINO = ("onnx/model.onnx", "last_hidden_state")
HUB_ENCODERS = {
    encoder.name: encoder
    for encoder in (
        ImageEncoder("dinov2-small", "likeness", "Apache-2.0", 88, 384, None, "Xenova/dinov2-small", *_DINO, "first"),
        ImageEncoder("dinov2-base", "fine kinds", "Apache-2.0", 346, 768, None, "Xenova/dinov2-base", *_DINO, "first"),
        ImageEncoder(
            "clip-base", "photos and words", "MIT", 352, 512, "English", "Xenova/clip-vit-base-patch32", tower=_CLIP
        ),
        ImageEncoder(
            "siglip2-base", "photos and words", "Apache-2.0", 372, 768, "many",
            "onnx-community/siglip2-base-patch16-224-ONNX", output="pooler_output", tower=_SIGLIP2,
        ),
    )
}  # fmt: skip
"""Encoders of the Hugging Face Hub, by name."""
ENCODERS = (PACKAGED_ENCODER, *HUB_ENCODERS.values())
"""All encoders; the one that needs no download comes first."""
