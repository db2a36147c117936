"""Visual words: pictures as sparse histograms of codebook blocks, the "visterms" of the WSABIE papers.

Weston, Bengio, Usunier: "WSABIE: scaling up to large vocabulary image annotation" (2011), section on features, uses
counts; the 2012 slides use tf-idf. Both are here.

For each scale the picture is cut into a grid with `cells` cells along its shorter side; a block is `across` x `across`
neighbouring cells, so that blocks overlap by all but one cell. A block's descriptor is a histogram
of the `PALETTE` beside a histogram of local binary patterns, both under a square root (Hellinger), so that the dot
product of two descriptors compares distributions; its length is 1 and the colours have `colour_weight` of the square.

Patterns are the uniform ones of Ojala, Pietikainen and Maenpaa (2002), grouped by appearance: flat,
spot, texture, and edges and corners in four directions. The full set of 59 did no better and costs more.

scikit-image has the patterns of pixels alone, and OpenCV for Python neither these nor a codebook
(`docs/decisions/picture-features.md`).
"""

from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from wsabie.core.arrays import Array, Float32, Float64, Int32, UInt8
from wsabie.core.errors import InputError, require
from wsabie.features.base.codebook import Codebook, learn_codebook
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext
from wsabie.features.base.word_extractor import BlockExtractor, Weighting, WordExtractor
from wsabie.features.images.augmentation import compute_pixel_window, crop_view
from wsabie.features.images.image_decoder import decode_with_size
from wsabie.features.images.image_extractor import BlockMap, ImageView, ScaledImageExtractor
from wsabie.io.records import Item, ItemSource
from wsabie.io.regions import ItemContent
from wsabie.kernels.features import local_binary_patterns as kernels
from wsabie.storage.schema_validation import check_array

PALETTE = (
    "273027", "8c8484", "ced2d8", "d24826", "d8987f", "80682c", "cfbe38", "c2d39c", "60dc2f", "40812f", "51d373",
    "48d7ae", "357e6c", "54d3d6", "4faad3", "365f7d", "5182d3", "4944b3", "6e27db", "45275f", "c792c4", "c93db5",
    "ce356a", "742d34",
)  # fmt: skip
"""sRGB colours that lie evenly over what a screen can show, closer together near grey: k-means of the colour cube in
CIELAB, weighted by exp(-chroma / 30)."""

N_COLOURS = len(PALETTE)

_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_D65 = np.array([0.95047, 1.0, 1.08883])
N_PATTERNS = 15
N_BINS = N_COLOURS + N_PATTERNS
"""Length of a descriptor."""
_MAX_ASPECT = 8  # longer pictures get oblong cells, so that the number of blocks is bounded


def convert_to_lab(rgb: Float64) -> Float64:
    """Convert sRGB colours from 0 to 255 to CIELAB (D65); last axis 3.

    Examples
    --------
    >>> convert_to_lab(np.array([[255.0, 255.0, 255.0], [0.0, 0.0, 0.0]])).round(1)[:, 0].tolist()
    [100.0, 0.0]
    """
    share = rgb / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    ratio = linear @ _TO_XYZ.T / _D65
    bent = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    x, y, z = bent[..., 0], bent[..., 1], bent[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@lru_cache(maxsize=1)
def build_colour_table() -> UInt8:
    """Return the nearest colour of the palette, in CIELAB, for each colour of 5 bits a channel.

    Returns
    -------
    ndarray, (32768,), uint8
        Index r >> 3 << 10 | g >> 3 << 5 | b >> 3.
    """
    level = np.arange(32) * 8.0 + 4
    cube = convert_to_lab(np.stack(np.meshgrid(level, level, level, indexing="ij"), axis=-1).reshape(-1, 3))
    palette = convert_to_lab(np.array([list(bytes.fromhex(colour)) for colour in PALETTE], np.float64))
    distances = ((cube[:, None] - palette) ** 2).sum(axis=2)
    return np.asarray(np.argmin(distances, axis=1).astype(np.uint8))


@dataclass(eq=False, repr=False, kw_only=True)
class BlockConfig:
    """Layout and descriptors of blocks.

    Attributes
    ----------
    cells : tuple of int
        Cells along the shorter side, one number a scale; a cell is never smaller than a pixel.
    across : int
        Cells along the side of a block.
    contrast : int, 0 to 255
        A neighbour counts as lighter when it is at least this many grey levels above the pixel; more than 0 keeps
        noise in flat regions from looking like texture.
    colour_weight : float, 0 to 1
        Share of the colours in a descriptor's squared length.
    """

    cells: tuple[int, ...] = (16, 8, 5)
    across: int = 4
    contrast: int = 4
    colour_weight: float = 0.6

    def validate(self) -> None:
        """Raise InputError where a value is out of range."""
        if not self.cells or not all(1 <= c <= 64 for c in self.cells):
            raise InputError(f"cells is {self.cells}; give one number from 1 to 64 for each scale, such as (16, 8, 5)")
        require(1 <= self.across <= 16, f"across is {self.across}; give a number of cells from 1 to 16")
        require(0 <= self.contrast <= 255, f"contrast is {self.contrast}; give a number of grey levels from 0 to 255")
        require(0 <= self.colour_weight <= 1, f"colour_weight is {self.colour_weight}; give a number from 0 to 1")


def compute_cell_borders(height: int, width: int, cells: int) -> kernels.CellGrid:
    """Return the borders of the cells of one scale, in pixels.

    Examples
    --------
    >>> grid = compute_cell_borders(4, 8, 2)
    >>> grid.rows.tolist(), grid.columns.tolist()
    ([0, 2, 4], [0, 2, 4, 6, 8])
    """
    shorter, longer = min(height, width), max(height, width)
    side = max(shorter / cells, longer / (_MAX_ASPECT * cells), 1.0)
    n_rows, n_columns = max(1, round(height / side)), max(1, round(width / side))
    rows = np.arange(n_rows + 1, dtype=np.int64) * height // n_rows
    columns = np.arange(n_columns + 1, dtype=np.int64) * width // n_columns
    return kernels.CellGrid(rows, columns)


def extract_block_descriptors(pixels: UInt8, config: BlockConfig) -> Float32:
    """Return the descriptors of all blocks.

    Parameters
    ----------
    pixels : (h, w, 3) uint8
        RGB, h and w at least 1.
    config : BlockConfig

    Returns
    -------
    ndarray, (n_blocks, N_BINS), float32
        Vectors of unit length, scale by scale in the order of `config.cells`, block rows first.

    Examples
    --------
    >>> extract_block_descriptors(np.zeros((192, 256, 3), np.uint8), BlockConfig()).shape
    (282, 39)
    """
    pixels = np.require(pixels, np.uint8, ["C", "W"])
    height, width = pixels.shape[:2]
    grids = [compute_cell_borders(height, width, cells) for cells in config.cells]
    codes = kernels.PixelCodes(np.empty((height, width), np.uint8), np.empty((height, width), np.uint8))
    grey = np.empty((height + 2, width + 2), np.uint8)
    kernels.encode_pixels(pixels, _build_code_tables(), config.contrast, grey, codes)
    bins = kernels.HistogramBins(N_COLOURS, N_PATTERNS, float(config.colour_weight))
    out = np.empty((sum(_count_blocks(grid, config.across) for grid in grids), N_BINS), np.float32)
    first = 0
    for grid in grids:
        last = first + _count_blocks(grid, config.across)
        cells = np.empty((len(grid.rows) - 1, len(grid.columns) - 1, N_BINS), np.int32)
        kernels.count_blocks(codes, grid, config.across, bins, cells, np.empty(N_BINS, np.int32), out[first:last])
        first = last
    return out


def list_block_boxes(height: int, width: int, config: BlockConfig) -> Int32:
    """Return the boxes of the blocks of `extract_block_descriptors` in a picture of that size.

    Returns
    -------
    ndarray, (n_blocks, 4), int32
        left, top, right, bottom in pixels; right and bottom are the first pixels outside.

    Examples
    --------
    >>> list_block_boxes(4, 4, BlockConfig(cells=(2,), across=1)).tolist()
    [[0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]]
    """
    boxes = []
    for cells in config.cells:
        grid = compute_cell_borders(height, width, cells)
        high, wide = _count_block_cells(grid, config.across)
        top, left = np.meshgrid(grid.rows[:-high], grid.columns[:-wide], indexing="ij")
        bottom, right = np.meshgrid(grid.rows[high:], grid.columns[wide:], indexing="ij")
        boxes.append(np.stack([left, top, right, bottom], axis=-1).reshape(-1, 4))
    return np.concatenate(boxes).astype(np.int32)


def _count_block_cells(grid: kernels.CellGrid, across: int) -> tuple[int, int]:
    return min(across, len(grid.rows) - 1), min(across, len(grid.columns) - 1)


def _count_blocks(grid: kernels.CellGrid, across: int) -> int:
    high, wide = _count_block_cells(grid, across)
    return (len(grid.rows) - high) * (len(grid.columns) - wide)


@lru_cache(maxsize=1)
def _build_code_tables() -> kernels.CodeTables:
    return kernels.CodeTables(build_colour_table(), build_pattern_table())


def build_pattern_table() -> UInt8:
    """Return the bin of each of the 256 patterns.

    0: no neighbour is lighter (a spot, or flat). 1: all are (a hole). 2: lighter and darker ones alternate (texture).
    From 3 on, lighter ones side by side: 1 or 2 of them (a corner), 3 to 5 (an edge), 6 or 7 (a darker corner), in
    each of four directions, where opposite directions are one.

    Returns
    -------
    ndarray, (256,), uint8

    Examples
    --------
    >>> table = build_pattern_table()
    >>> [int(table[bits]) for bits in (0, 0b11111111, 0b101)]
    [0, 1, 2]
    >>> [int(table[bits]) for bits in (0b00000111, 0b01110000, 0b00011100, 0b00000001)]
    [7, 7, 13, 3]
    """
    return np.array([_find_pattern_bin([bits >> k & 1 for k in range(8)]) for bits in range(256)], np.uint8)


def _find_pattern_bin(lighter: list[int]) -> int:
    n = sum(lighter)
    starts = [k for k in range(8) if lighter[k] and not lighter[k - 1]]
    if not starts:
        return 0 if n == 0 else 1
    if len(starts) > 1:
        return 2
    direction = (2 * starts[0] + n - 1) // 2 % 4  # of the middle of the run
    return 3 + 3 * direction + (0 if n <= 2 else 1 if n <= 5 else 2)


@dataclass(eq=False, repr=False)
class VisualWords(BlockConfig, WordExtractor, BlockExtractor, ScaledImageExtractor):
    """Pictures as counts of visual words, with a codebook learned from pictures.

    Parameters
    ----------
    n_words : int or "auto"
        Size of the codebook. "auto": a tenth of the distinct blocks of the sample, at most 10,000.
    size : int
        Longer side in pixels to which pictures are scaled down; smaller ones stay as they are.
    weighting : {"counts", "tfidf"}
        "counts": the number of blocks with the word. "tfidf": log(1 + count) * idf at unit length, with
        idf = log((1 + n) / (1 + pictures with the word)) + 1 over the sample of `fit`.
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
    codebook_ : Codebook
    idf_ : (n_features_,) float32, or None with "counts"
    n_features_ : int
        Number of words of the learned codebook.

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
    >>> from wsabie import ItemList
    >>> source = ItemList(Path(), [Item(c, striped(c), (c,)) for c in ("red", "teal")])
    >>> extractor = VisualWords(n_words=20).fit(source)
    >>> rows = extractor.transform(source)
    >>> rows.X.shape, rows.label_names
    ((2, 20), ['red', 'teal'])
    """

    name = "visual-words"
    kind = "visual_words"
    noun = "codebook of visual words"
    max_blocks: ClassVar[int] = 300_000
    """Size of the sample of `fit`; from each of at most `max_blocks / 64` pictures an equal number is drawn."""

    n_words: int | Literal["auto"] = 10_000
    _: KW_ONLY
    weighting: Weighting = "counts"
    codebook_: Codebook = field(init=False)

    def _learn_words(self, source: ItemSource, context: WorkContext) -> list[int]:
        if self.n_words != "auto" and self.n_words > self.max_blocks:
            raise InputError(
                f"{self.n_words:,} visual words are asked for, but at most {self.max_blocks:,} blocks are sampled to "
                "learn them from; ask for fewer"
            )
        positions, blocks = self._sample_blocks(source, self.max_blocks, context)
        n_words = None if self.n_words == "auto" else self.n_words
        self.codebook_ = learn_codebook(
            blocks, n_words, seed=self.seed, executor=context.executor, progress=context.progress
        )
        return positions

    def cut(self, view: ImageView) -> Float32:
        """Return the descriptors of all blocks of a view.

        Parameters
        ----------
        view : ImageView

        Returns
        -------
        (n_blocks, n_values) float32
        """
        return extract_block_descriptors(view.scale_to(self.size), self)

    def block_map(self, content: ItemContent) -> BlockMap:
        """Return the visual words of a picture with their boxes, in pixels of the full upright picture.

        Parameters
        ----------
        content : Path, bytes or RegionCrop
            The picture: a file, its content, or a region of either.

        Returns
        -------
        BlockMap

        Raises
        ------
        UnreadableItemError
            The picture cannot be read.
        """
        codebook = self._get_words()
        decoded = decode_with_size(content, size=self.size, max_pixels=self.max_pixels)
        height, width = decoded.pixels.shape[:2]
        view = next(self.iterate_views(Item("", content, ())))
        window = compute_pixel_window(view.crop, height, width)
        view_pixels = crop_view(decoded.pixels, view.crop)
        words = codebook.assign(extract_block_descriptors(view_pixels, self))
        corner = np.array([window.left, window.top] * 2)
        boxes = list_block_boxes(view_pixels.shape[0], view_pixels.shape[1], self) + corner
        scale = np.array([decoded.width / width, decoded.height / height] * 2)
        return BlockMap(boxes * scale, words, decoded.width, decoded.height)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        self.validate()
        is_count = self.n_words == "auto" or (isinstance(self.n_words, int | np.integer) and self.n_words >= 1)
        require(is_count, f'n_words is {self.n_words}; give a number of visual words, 1 or more, or "auto"')
        super().check()

    def _dump_tensors(self) -> dict[str, Array]:
        return {"centres": self._get_words().centres, **super()._dump_tensors()}

    def _restore(self, tensors: dict[str, Array]) -> None:
        self.codebook_ = Codebook(check_array(tensors, "centres", "float32", (None, None)))
        n, n_bins = self.codebook_.centres.shape
        if n_bins != N_BINS:
            raise self._make_version_error()
        if not n:
            raise ValueError("centres holds no visual word")
        super()._restore(tensors)

    def _get_words(self) -> Codebook:
        self._require_learned("codebook_", "this codebook of visual words has not learned")
        return self.codebook_

    def _count_words(self, view: ImageView) -> EncodedRow:
        words, counts = np.unique(self.codebook_.assign(self.cut(view)), return_counts=True)
        return words, counts.astype(np.float32)
