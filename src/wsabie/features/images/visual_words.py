"""Visual words: pictures as sparse histograms of codebook blocks, the "visterms" of the WSABIE papers.

Weston, Bengio, Usunier: "WSABIE: scaling up to large vocabulary image annotation" (2011), section on features, uses
counts; the 2012 slides use tf-idf. Both are here.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from wsabie.core.arrays import Array, Float32, Int32
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.features.base.codebook import Codebook, learn_codebook
from wsabie.features.base.extraction_tasks import BlockMap, ExtractionTask, ImageView
from wsabie.features.base.idf_weighting import weight_counts
from wsabie.features.base.sampling import WorkContext, learn_idf, sample_blocks, select_sample_positions
from wsabie.features.images.augmentation import compute_pixel_window
from wsabie.features.images.block_descriptors import N_BINS, BlockConfig, extract_block_descriptors, list_block_boxes
from wsabie.features.images.image_decoder import decode_with_size
from wsabie.features.images.image_extractor import MAX_PIXELS, ImageFeatureExtractor
from wsabie.io.records import Item, ItemSource
from wsabie.io.regions import ItemContent
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_array

KIND = "visual_terms"
_DEFAULT_PLAN = BlockConfig()


@dataclass(frozen=True)
class BlockSampler:
    """Sampler of the block descriptors (n_blocks, n_bins) of a view; sent to workers."""

    size: int
    plan: BlockConfig

    def __call__(self, look: ImageView) -> Float32:
        return extract_block_descriptors(look.at(self.size), self.plan)


@dataclass(frozen=True)
class VisualWordEncoder:
    """Encoder of a view as counts of visual words; sent to workers."""

    blocks: BlockSampler
    dictionary: Codebook
    idf: Float32 | None = None

    def __call__(self, look: ImageView) -> tuple[Int32, Float32]:
        words, counts = np.unique(self.dictionary.assign(self.blocks(look)), return_counts=True)
        return words, weight_counts(words, counts.astype(np.float32), self.idf)


class VisualWords(ImageFeatureExtractor):
    """Pictures as counts of visual words, with a codebook learned from pictures.

    Parameters
    ----------
    n_words : int or "auto"
        Size of the codebook. "auto": a tenth of the distinct blocks of the sample, at most 10,000.
    size : int
        Longer side in pixels to which pictures are scaled down; smaller ones stay as they are.
    weighting : {"counts", "tfidf"}
        "counts": the number of blocks with the word. "tfidf": log(1 + count) * idf at unit length, with
        idf = log((1 + n) / (1 + pictures with the term)) + 1 over the sample of `fit`.
    cells, across, contrast, colour_weight
        Layout and descriptors of blocks; see `BlockConfig`.
    crop : float
        Side of the centred window, as a share of the picture's. Below 1 it goes well with `augment`, whose random
        windows then show what the centred one leaves out.
    max_pixels : int
        Larger pictures are rejected before they are decoded.
    seed : int
        Seed of the sample, the first centres and the random views.

    Attributes
    ----------
    dictionary_ : Codebook
    idf_ : (n_words_,) float32, or None with "counts"
    n_words_ : int
        Also `n_features_`, as in other extractors.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> def striped(colour, n=64):
    ...     image, file = Image.effect_noise((n, n), 90).convert("RGB"), io.BytesIO()
    ...     image.paste(colour, (0, 0, n, n // 2))
    ...     image.save(file, "PNG")
    ...     return file.getvalue()
    >>> from pathlib import Path
    >>> from wsabie.io.records import ItemList
    >>> source = ItemList(Path(), [Item(c, striped(c), (c,)) for c in ("red", "teal")])
    >>> terms = VisualWords(n_words=20).fit(source)
    >>> rows = terms.transform(source)
    >>> rows.X.shape, rows.label_names
    ((2, 20), ['red', 'teal'])
    """

    name = "terms"
    kind = KIND
    max_blocks: ClassVar[int] = 300_000
    """Size of the sample of `fit`; from each of at most `max_blocks / 64` pictures an equal number is drawn."""

    _names = ("n_words", "weighting", "cells", "across", "contrast", "colour_weight")

    def __init__(
        self,
        n_words: int | Literal["auto"] = 10_000,
        *,
        size: int = 256,
        weighting: Literal["counts", "tfidf"] = "counts",
        cells: tuple[int, ...] = _DEFAULT_PLAN.cells,
        across: int = _DEFAULT_PLAN.across,
        contrast: int = _DEFAULT_PLAN.contrast,
        colour_weight: float = _DEFAULT_PLAN.colour_weight,
        crop: float = 1.0,
        max_pixels: int = MAX_PIXELS,
        seed: int = 0,
    ) -> None:
        super().__init__(size=size, crop=crop, max_pixels=max_pixels, seed=seed)
        self.n_words = n_words
        self.weighting = weighting
        self.cells = cells
        self.across = across
        self.contrast = contrast
        self.colour_weight = colour_weight

    @property
    def n_words_(self) -> int:
        """Number of words of the learned codebook."""
        return len(self._fitted())

    @property
    def n_features_(self) -> int:
        """Number of columns: `n_words_`."""
        return self.n_words_

    @property
    def counts(self) -> bool:
        """True if the values are counts."""
        return self.weighting == "counts"

    def _learn(self, source: ItemSource, run: WorkContext) -> None:
        if self.n_words != "auto" and self.n_words > self.max_blocks:
            raise InputError(
                f"{self.n_words:,} visual words are asked for, but at most {self.max_blocks:,} blocks are sampled to "
                "learn them from; ask for fewer"
            )
        viewer, sampler, places = self.make_decoder(), self._blocks(), select_sample_positions(source, self.max_blocks)
        blocks = sample_blocks(viewer, sampler, source, places, self.max_blocks, run)
        n_words = None if self.n_words == "auto" else self.n_words
        self.dictionary_ = learn_codebook(blocks, n_words, seed=self.seed, executor=run.executor, progress=run.progress)
        self.idf_ = None
        if self.weighting == "tfidf":
            job = ExtractionTask(viewer, VisualWordEncoder(sampler, self.dictionary_))
            self.idf_ = learn_idf(job, self.n_words_, source, places, run)

    def encoder(self) -> VisualWordEncoder:
        """Return the encoder, which is sent to workers."""
        return VisualWordEncoder(self._blocks(), self._fitted(), self.idf_)

    def block_map(self, content: ItemContent) -> BlockMap:
        """Return the visual words of a picture with their places, in pixels of the full upright picture.

        Raises
        ------
        UnreadableItemError
            The picture cannot be read.
        """
        codebook, plan = self._fitted(), self._plan()
        decoded = decode_with_size(content, size=self.size, max_pixels=self.max_pixels)
        height, width = decoded.pixels.shape[:2]
        look = next(self.make_decoder().iterate_views(Item("", content, ())))
        window, view_pixels = (
            compute_pixel_window(look.view, height, width),
            look._replace(decoded=lambda _: decoded).at(self.size),
        )
        terms = codebook.assign(extract_block_descriptors(view_pixels, plan))
        boxes = list_block_boxes(view_pixels.shape[0], view_pixels.shape[1], plan) + np.array(
            [window.left, window.top] * 2
        )
        scale = np.array([decoded.width / width, decoded.height / height] * 2)
        return BlockMap(boxes * scale, terms, decoded.width, decoded.height)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        self._plan().validate()
        if self.n_words != "auto" and not (isinstance(self.n_words, int | np.integer) and self.n_words >= 1):
            raise InputError(f'n_words is {self.n_words}; give a number of visual words, 1 or more, or "auto"')
        if self.weighting not in ("counts", "tfidf"):
            raise InputError(f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')
        super().check()

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Return the extractor of a saved state.

        Raises
        ------
        ModelFolderError
            Not a dictionary, or one of another version.
        """
        if parts.kind != KIND or "centres" not in parts.tensors:
            raise ModelFolderError(
                f"this is a {parts.kind!r} and no dictionary of visual words; give the folder of one"
            )
        centres = parts.tensors["centres"]
        if centres.ndim != 2 or centres.shape[1] != N_BINS:
            raise cls._other_version()
        return super().from_parts(parts)

    def _tensors(self) -> dict[str, Array]:
        tensors = {"centres": self._fitted().centres}
        return tensors if self.idf_ is None else {**tensors, "idf": self.idf_}

    def _restore(self, tensors: dict[str, Any]) -> None:
        self.dictionary_ = Codebook(check_array(tensors, "centres", "float32", (None, None)))
        n = len(self.dictionary_)
        if not n:
            raise ValueError("centres holds no term")
        self.idf_ = check_array(tensors, "idf", "float32", (n,)) if self.weighting == "tfidf" else None

    @classmethod
    def _other_version(cls) -> ModelFolderError:
        return ModelFolderError(
            "this dictionary of visual words was made by another version of wsabie; install that version, or learn "
            "the dictionary again"
        )

    def _plan(self) -> BlockConfig:
        return BlockConfig(self.cells, self.across, self.contrast, self.colour_weight)

    def _blocks(self) -> BlockSampler:
        return BlockSampler(self.size, self._plan())

    def _fitted(self) -> Codebook:
        codebook: Codebook | None = getattr(self, "dictionary_", None)
        if codebook is None:
            raise InputError("this dictionary of visual words has not learned yet; call fit with pictures first")
        return codebook
