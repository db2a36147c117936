"""Visual terms: pictures as sparse histograms of a dictionary's blocks, the "visterms" of the WSABIE papers.

Weston, Bengio, Usunier: "WSABIE: scaling up to large vocabulary image annotation" (2011), section on features, uses
counts; the 2012 slides use tf-idf. Both are here.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Int32
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.blocks import N_BINS, BlockPlan
from wsabie.features.collect import rows_of
from wsabie.features.dictionary import Dictionary, learn_dictionary
from wsabie.features.learning import BATCH, Run, batches, learn_idf, sample_blocks, sample_places
from wsabie.features.viewer import BlockMap, Described, Describing, Rejected, Viewer, describe_batch
from wsabie.sources.records import Picture, PictureSource, Rows
from wsabie.storage.folder import Parts, load_folder, save_folder
from wsabie.storage.rejects import Rejects

KIND = "visual_terms"
_DESCRIPTOR = 1  # version of what a block's descriptor means; raised when palette, patterns or scaling change
_DEFAULT_PLAN = BlockPlan()


class VisualTerms:
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

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> def striped(colour, n=64):
    ...     image, file = Image.effect_noise((n, n), 90).convert("RGB"), io.BytesIO()
    ...     image.paste(colour, (0, 0, n, n // 2))
    ...     image.save(file, "PNG")
    ...     return file.getvalue()
    >>> from wsabie.sources.records import PictureList
    >>> source = PictureList(Path(), [Picture(c, striped(c), (c,)) for c in ("red", "teal")])
    >>> terms = VisualTerms(n_terms=20).fit(source)
    >>> rows = terms.transform(source)
    >>> rows.X.shape, rows.label_names
    ((2, 20), ['red', 'teal'])
    """

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
        max_pixels: int = 64_000_000,
        seed: int = 0,
    ) -> None:
        self.n_terms = n_terms
        self.size = size
        self.weighting = weighting
        self.cells = cells
        self.across = across
        self.contrast = contrast
        self.colour_weight = colour_weight
        self.crop = crop
        self.max_pixels = max_pixels
        self.seed = seed

    @property
    def n_terms_(self) -> int:
        """Number of terms of the learned dictionary."""
        return len(self._fitted())

    def fit(
        self,
        source: PictureSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
        max_blocks: int = 300_000,
    ) -> Self:
        """Learn the dictionary from a sample of pictures spread evenly over the collection.

        Parameters
        ----------
        source : PictureSource
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
        self._check(max_blocks)
        _refuse_what_holds_no_pictures(source)
        run = Run(executor or Serial(), progress, Rejects() if rejects is None else rejects)
        viewer, places = self._viewer(), sample_places(source, max_blocks)
        blocks = sample_blocks(viewer, source, places, max_blocks, run)
        n_terms = None if self.n_terms == "auto" else self.n_terms
        self.dictionary_ = learn_dictionary(blocks, n_terms, seed=self.seed, progress=progress)
        weighted = self.weighting == "tfidf"
        self.idf_ = learn_idf(viewer, self.dictionary_, source, places, run) if weighted else None
        return self

    def transform(
        self,
        source: PictureSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
        augment: int = 0,
    ) -> Rows:
        """The collection as rows in memory; for what does not fit there see `extract`.

        Parameters
        ----------
        source, executor, progress, rejects
            As in `fit`. Pictures that cannot be read are listed and left out.
        augment : int
            Further views of each picture as rows of their own, for training only. Their ids are the picture's with
            "#1", "#2" ... behind, their group is the picture's (its id where it has none), so that a split by group
            keeps them together.

        Returns
        -------
        Rows
            X is csr_matrix (n, n_terms_) float32, label names in the order of their code points.
        """
        rejects = Rejects() if rejects is None else rejects
        described = self.iterate(source, executor=executor, progress=progress, rejects=rejects, augment=augment)
        counts = self.weighting == "counts"
        return rows_of(described, self.n_terms_, counts=counts, dictionary=self.fingerprint(), augment=augment)

    def iterate(
        self,
        source: PictureSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
        augment: int = 0,
    ) -> Iterator[Described]:
        """The rows of `transform` one by one, in order, with only a few batches of pictures in memory."""
        _refuse_what_holds_no_pictures(source)
        rejects = Rejects() if rejects is None else rejects
        with progress.stage("describing pictures", len(source), "pictures") as stage:
            for seen in self.describe(batches(source, BATCH), executor=executor, augment=augment):
                for one in seen:
                    if isinstance(one, Rejected):
                        rejects.add(*one)
                    else:
                        yield from one
                stage.advance(len(seen))

    def describe(
        self, groups: Iterable[tuple[Picture, ...]], *, executor: Executor | None = None, augment: int = 0
    ) -> Iterator[list[list[Described] | Rejected]]:
        """For each group of pictures, for each picture: its rows, or why it was skipped."""
        job = Describing(self._viewer(augment), self._fitted())
        for seen in (executor or Serial()).map_with(describe_batch, job, groups):
            yield [one if isinstance(one, Rejected) else [self._weighted(row) for row in one] for one in seen]

    def transform_one(self, content: Path | bytes) -> tuple[Int32, Float32]:
        """Terms (nnz,), ascending, and values (nnz,) of one picture.

        Raises
        ------
        RejectedPicture
            The picture cannot be read.
        """
        row = self._weighted(self._viewer().describe(Picture("", content, ()), self._fitted())[0])
        return row.indices, row.values

    def block_map(self, content: Path | bytes) -> BlockMap:
        """Which term lies where in a picture, in pixels of the picture in full, upright.

        Raises
        ------
        RejectedPicture
            The picture cannot be read.
        """
        return self._viewer().block_map(Picture("", content, ()), self._fitted())

    def to_parts(self) -> Parts:
        """JSON-able parameters and named arrays."""
        tensors = {"centres": self._fitted().centres}
        if self.idf_ is not None:
            tensors["idf"] = self.idf_
        return Parts(KIND, {"descriptor": _DESCRIPTOR, "parameters": self._parameters()}, tensors)

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
        if parts.config.get("descriptor") != _DESCRIPTOR or centres.ndim != 2 or centres.shape[1] != N_BINS:
            raise ModelFolderError(
                "this dictionary of visual terms was made by another version of wsabie; install that version, or "
                "learn the dictionary again"
            )
        parameters = dict(parts.config["parameters"])
        terms = cls(**{**parameters, "cells": tuple(parameters["cells"])})
        terms.dictionary_ = Dictionary(centres)
        terms.idf_ = parts.tensors.get("idf")
        return terms

    def save(self, path: str | Path) -> None:
        """Write the folder of the dictionary, atomically."""
        save_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved dictionary.

        Raises
        ------
        ModelFolderError
            Missing, damaged, something else, or of another version.
        """
        return cls.from_parts(load_folder(path))

    def fingerprint(self) -> str:
        """32 hex digits that change with anything that changes a row."""
        parts = self.to_parts()
        digest = hashlib.sha256(json.dumps(parts.config, sort_keys=True).encode())
        for name in sorted(parts.tensors):
            digest.update(parts.tensors[name].tobytes())
        return digest.hexdigest()[:32]

    def _parameters(self) -> dict[str, object]:
        plan = {**asdict(self._plan()), "cells": list(self.cells)}
        names = ("n_terms", "size", "weighting", "crop", "max_pixels", "seed")
        return {name: getattr(self, name) for name in names} | plan

    def refuse_other(
        self, wanted: "VisualTerms", where: object, remedy: str, names: Iterable[str] | None = None
    ) -> None:
        """Raise InputError when this dictionary, at `where`, was made otherwise than `wanted` (in `names`, or all)."""
        made, asked = self._parameters(), wanted._parameters()
        compared = made if names is None else names
        differ = [f"{name} {made[name]} and not {asked[name]}" for name in compared if made[name] != asked[name]]
        if differ:
            raise InputError(f"the dictionary {where} was made with {', '.join(differ)}; {remedy}")

    def _check(self, max_blocks: int) -> None:
        self._plan().validated()
        if self.n_terms != "auto":
            if not (isinstance(self.n_terms, int | np.integer) and self.n_terms >= 1):
                raise InputError(f'n_terms is {self.n_terms}; give a number of visual terms, 1 or more, or "auto"')
            if self.n_terms > max_blocks:
                raise InputError(
                    f"{self.n_terms:,} visual terms are asked for, but at most {max_blocks:,} blocks are sampled to "
                    "learn them from; ask for fewer"
                )
        if not (isinstance(self.seed, int | np.integer) and 0 <= self.seed < 2**63):
            raise InputError(f"seed is {self.seed}; choose a whole number from 0 to {2**63 - 1}")
        if self.weighting not in ("counts", "tfidf"):
            raise InputError(f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')
        if not 1 <= self.size <= 4096:
            raise InputError(f"size is {self.size}; give the longer side in pixels, from 1 to 4096")
        if not 0 < self.crop <= 1:
            raise InputError(f"crop is {self.crop}; give a share of the picture's side, above 0 and at most 1")

    def _plan(self) -> BlockPlan:
        return BlockPlan(self.cells, self.across, self.contrast, self.colour_weight)

    def _viewer(self, augment: int = 0) -> Viewer:
        return Viewer(self.size, self.max_pixels, self.crop, self._plan(), augment, self.seed)

    def _fitted(self) -> Dictionary:
        found: Dictionary | None = getattr(self, "dictionary_", None)
        if found is None:
            raise InputError("this dictionary of visual terms has not learned yet; call fit with pictures first")
        return found

    def _weighted(self, row: Described) -> Described:
        if self.idf_ is None:
            return row
        values = np.log1p(row.values) * self.idf_[row.indices]
        return row._replace(values=(values / np.sqrt(values @ values)).astype(np.float32))


def _refuse_what_holds_no_pictures(source: object) -> None:
    if isinstance(source, Rows):
        raise InputError("visual terms describe pictures and these are rows of features; give a source of pictures")
    if isinstance(source, str | Path):
        raise InputError(f"{str(source)!r} is a path; give the pictures in it: open_source({str(source)!r})")
