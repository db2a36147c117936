"""Visual terms: pictures as sparse histograms of a dictionary's blocks, the "visterms" of the WSABIE papers.

Weston, Bengio, Usunier: "WSABIE: scaling up to large vocabulary image annotation" (2011), section on features, uses
counts; the 2012 slides use tf-idf. Both are here.
"""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Int32
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.augment import window_of
from wsabie.features.blocks import N_BINS, BlockPlan, block_boxes, describe_blocks
from wsabie.features.decode import decode_full
from wsabie.features.dictionary import Dictionary, learn_dictionary
from wsabie.features.learning import Run, learn_idf, sample_blocks, sample_places
from wsabie.features.pictures import MAX_PIXELS, PictureDescriber
from wsabie.features.viewer import BlockMap, Describing, Look
from wsabie.features.weighting import weighed
from wsabie.sources.records import Item, ItemSource
from wsabie.sources.regions import Content
from wsabie.storage.folder import Array, Parts
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import check_array

KIND = "visual_terms"
_DEFAULT_PLAN = BlockPlan()


@dataclass(frozen=True)
class Blocks:
    """Descriptors (n_blocks, n_bins) of what is seen; travels to workers."""

    size: int
    plan: BlockPlan

    def __call__(self, look: Look) -> Float32:
        return describe_blocks(look.at(self.size), self.plan)


@dataclass(frozen=True)
class Terms:
    """The terms of what is seen and how many blocks carry each; travels to workers."""

    blocks: Blocks
    dictionary: Dictionary
    idf: Float32 | None = None

    def __call__(self, look: Look) -> tuple[Int32, Float32]:
        terms, n = np.unique(self.dictionary.assign(self.blocks(look)), return_counts=True)
        return terms, weighed(terms, n.astype(np.float32), self.idf)


class VisualTerms(PictureDescriber):
    """A dictionary of visual terms, learned from pictures, and the pictures as counts of them.

    Parameters
    ----------
    n_terms : int or "auto"
        Size of the dictionary. "auto": a tenth of the distinct blocks of the sample, at most 10,000.
    size : int
        Longer side in pixels to which pictures are scaled down; smaller ones stay as they are.
    weighting : {"counts", "tfidf"}
        "counts": the number of blocks that carry the term. "tfidf": log(1 + count) * idf at unit length, with
        idf = log((1 + n) / (1 + pictures with the term)) + 1 over the sample of `fit`.
    cells, across, contrast, colour_weight
        How blocks are laid and described: see `BlockPlan`.
    crop : float
        Side of the centred window that is looked at, as a share of the picture's. Below 1 it goes well with
        `augment`, whose random windows then show what the centred one leaves out.
    max_pixels : int
        Larger pictures are rejected before they are decoded.
    seed : int
        Of the sample, the first centres and the random views.

    Attributes
    ----------
    dictionary_ : Dictionary
    idf_ : (n_terms_,) float32, or None with "counts"
    n_terms_ : int
        Also `n_features_`, as other describers call it.

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
    >>> from wsabie.sources.records import ItemList
    >>> source = ItemList(Path(), [Item(c, striped(c), (c,)) for c in ("red", "teal")])
    >>> terms = VisualTerms(n_terms=20).fit(source)
    >>> rows = terms.transform(source)
    >>> rows.X.shape, rows.label_names
    ((2, 20), ['red', 'teal'])
    """

    name = "terms"
    kind = KIND
    _names = ("n_terms", "weighting", "cells", "across", "contrast", "colour_weight")

    def __init__(
        self,
        n_terms: int | Literal["auto"] = 10_000,
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
        self.n_terms = n_terms
        self.weighting = weighting
        self.cells = cells
        self.across = across
        self.contrast = contrast
        self.colour_weight = colour_weight

    @property
    def n_terms_(self) -> int:
        """Number of terms of the learned dictionary."""
        return len(self._fitted())

    @property
    def n_features_(self) -> int:
        """Number of columns: `n_terms_`."""
        return self.n_terms_

    @property
    def counts(self) -> bool:
        """The values are counts."""
        return self.weighting == "counts"

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
        max_blocks: int = 300_000,
    ) -> Self:
        """Learn the dictionary from a sample of pictures spread evenly over the collection.

        Parameters
        ----------
        source : ItemSource
            Read once, and once more for "tfidf".
        executor : Executor or None
            Where pictures are decoded; None: this process.
        progress : Progress
        rejects : Rejects or None
            Where pictures that cannot be read are listed.
        max_blocks : int
            Size of the sample; from each of at most `max_blocks / 64` pictures an equal number is drawn.

        Raises
        ------
        InputError
            A parameter is out of range, no picture can be read, or there are fewer distinct blocks than terms.
        """
        self.check()
        if self.n_terms != "auto" and self.n_terms > max_blocks:
            raise InputError(
                f"{self.n_terms:,} visual terms are asked for, but at most {max_blocks:,} blocks are sampled to "
                "learn them from; ask for fewer"
            )
        self.refuse(source)
        run = Run(executor or Serial(), progress, Rejects() if rejects is None else rejects)
        viewer, cut, places = self.viewer(), self._blocks(), sample_places(source, max_blocks)
        blocks = sample_blocks(viewer, cut, source, places, max_blocks, run)
        n_terms = None if self.n_terms == "auto" else self.n_terms
        self.dictionary_ = learn_dictionary(blocks, n_terms, seed=self.seed, executor=executor, progress=progress)
        self.idf_ = None
        if self.weighting == "tfidf":
            job = Describing(viewer, Terms(cut, self.dictionary_))
            self.idf_ = learn_idf(job, self.n_terms_, source, places, run)
        return self

    def encoder(self) -> Terms:
        """The part that travels to workers."""
        return Terms(self._blocks(), self._fitted(), self.idf_)

    def block_map(self, content: Content) -> BlockMap:
        """Which term lies where in a picture, in pixels of the picture in full, upright.

        Raises
        ------
        RejectedItem
            The picture cannot be read.
        """
        dictionary, plan = self._fitted(), self._plan()
        decoded = decode_full(content, size=self.size, max_pixels=self.max_pixels)
        height, width = decoded.pixels.shape[:2]
        look = next(self.viewer().looks(Item("", content, ())))
        window, part = window_of(look.view, height, width), look._replace(decoded=lambda _: decoded).at(self.size)
        terms = dictionary.assign(describe_blocks(part, plan))
        boxes = block_boxes(part.shape[0], part.shape[1], plan) + np.array([window.left, window.top] * 2)
        scale = np.array([decoded.width / width, decoded.height / height] * 2)
        return BlockMap(boxes * scale, terms, decoded.width, decoded.height)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        self._plan().validated()
        if self.n_terms != "auto" and not (isinstance(self.n_terms, int | np.integer) and self.n_terms >= 1):
            raise InputError(f'n_terms is {self.n_terms}; give a number of visual terms, 1 or more, or "auto"')
        if self.weighting not in ("counts", "tfidf"):
            raise InputError(f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')
        super().check()

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The dictionary that `to_parts` described.

        Raises
        ------
        ModelFolderError
            Not a dictionary, or one of another version.
        """
        if parts.kind != KIND or "centres" not in parts.tensors:
            raise ModelFolderError(
                f"this is a {parts.kind!r} and no dictionary of visual terms; give the folder of one"
            )
        centres = parts.tensors["centres"]
        if centres.ndim != 2 or centres.shape[1] != N_BINS:
            raise cls._other_version()
        return super().from_parts(parts)

    def _tensors(self) -> dict[str, Array]:
        tensors = {"centres": self._fitted().centres}
        return tensors if self.idf_ is None else {**tensors, "idf": self.idf_}

    def _restore(self, tensors: dict[str, Any]) -> None:
        self.dictionary_ = Dictionary(check_array(tensors, "centres", "float32", (None, None)))
        n = len(self.dictionary_)
        if not n:
            raise ValueError("centres holds no term")
        self.idf_ = check_array(tensors, "idf", "float32", (n,)) if self.weighting == "tfidf" else None

    @classmethod
    def _other_version(cls) -> ModelFolderError:
        return ModelFolderError(
            "this dictionary of visual terms was made by another version of wsabie; install that version, or learn "
            "the dictionary again"
        )

    def _plan(self) -> BlockPlan:
        return BlockPlan(self.cells, self.across, self.contrast, self.colour_weight)

    def _blocks(self) -> Blocks:
        return Blocks(self.size, self._plan())

    def _fitted(self) -> Dictionary:
        found: Dictionary | None = getattr(self, "dictionary_", None)
        if found is None:
            raise InputError("this dictionary of visual terms has not learned yet; call fit with pictures first")
        return found
