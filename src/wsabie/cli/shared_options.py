"""Options and arguments that several commands share, and their conversions."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.framework import Options, Scope, Settings, list_stated, option
from wsabie.cli.inputs import open_data
from wsabie.cli.output import TerminalProgress, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.core.execution import DEVICE_VARIABLE, Executor, ProcessExecutor, SerialExecutor
from wsabie.core.json_conversion import convert_records
from wsabie.core.machine import MAX_THREADS, resolve_threads
from wsabie.features.extractor_names import list_extractor_names
from wsabie.storage.output_checks import OutputKind, check_output_paths
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.features.base.sampling import WorkContext
    from wsabie.io.records import Source
    from wsabie.io.shards.sharded_table import ShardedFeatureTable
    from wsabie.vocabulary.concept_hierarchy import Hierarchy


def parse_positive(text: str) -> float:
    """Parse a positive number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise typer.BadParameter(f"{text} is not a number above 0.")
    return number


number_option = partial(option, parser=parse_positive, metavar="NUMBER")
"""Declare an option that takes a number above 0."""
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Pictures, sounds or documents in a folder, shards, Parquet, CSV, TSV or JSON lines with a column text, "
        "svmlight/XC, Mulan ARFF, fastText text, pairs in a TSV, or a published collection; FILE.toml declares kinds "
        "of entities and relations between them.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, as `wsabie train --model` wrote it.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]
OptionalSeed = Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random (default: 0).")]
Strict = Annotated[bool, typer.Option(help="Stop at the first bad input instead of listing it.")]
RejectFile = Annotated[Path | None, typer.Option(help="Write what was skipped to this file (JSON lines).")]
_RAY_HELP = "Share the work on a Ray cluster: HOST:PORT of its head, or local."
RayAddress = Annotated[str | None, typer.Option(metavar="ADDRESS", help=_RAY_HELP)]
LabelLimit = Annotated[int, typer.Option(..., "-k", min=1, help="How many labels.")]
RecallTarget = Annotated[float, typer.Option(min=0.01, max=1, help="Share of the exact top 10 that is found.")]
AllowOverlap = Annotated[bool, typer.Option(help="Judge training rows too, instead of refusing.")]
MinRows = Annotated[int, typer.Option(min=1, help="Leave out labels with fewer training rows than this.")]
Items = Annotated[
    Literal["regions", "boxes", "pictures"] | None,
    typer.Option(
        help="Of COCO and Pascal VOC: regions, boxes (regions without their outlines), or pictures with the labels of "
        "all their regions (default: regions)."
    ),
]
_LANDMARKS_HELP = "Rows that components compare all others with (default: all up to 4,096, else 4 per component)."
Landmarks = Annotated[int | None, typer.Option(min=1, help=_LANDMARKS_HELP)]
RelationName = Literal[
    "is-a", "instance-of", "part-of", "member-of", "substance-of",
    "has-kind", "has-instance", "has-part", "has-member", "has-substance",
]  # fmt: skip
_TABLE_HELP = "Concepts of labels, by hand: label TAB id a line, as `wsabie labels match` writes them."
Table = Annotated[Path | None, typer.Option(help=_TABLE_HELP)]
_CANDIDATES_HELP = "Only these labels: a file, one a line (such as those that no training row had), or a model."
Candidates = Annotated[Path | None, typer.Option(help=_CANDIDATES_HELP)]
_KNOWLEDGE_HELP = "WordNet's folder, Open Images' hierarchy, translations or an is-a list; several complete each other."
Knowledge = Annotated[list[Path] | None, typer.Option(metavar="<path>", help=_KNOWLEDGE_HELP)]
_PAIRS_HELP = "A list of id TAB id that states a relation: has-part=parts.tsv."
RelationPairs = Annotated[list[str] | None, typer.Option(metavar="RELATION=FILE", help=_PAIRS_HELP)]


def make_executor(threads: int | None, ray: str | None = None, *paths: Path | None) -> Executor:
    """Make an executor: several processes, this process for one thread, or a Ray cluster.

    All nodes of the cluster have to see the paths.
    """
    if ray is not None:
        from wsabie.distributed.ray_cluster import RayExecutor, check_paths_on_nodes

        executor = RayExecutor(ray)
        check_paths_on_nodes(path for path in paths if path is not None)
        return executor
    n_processes = resolve_threads(threads)
    can_start_processes = os.access(sys.executable, os.X_OK)  # not a process that dropped its rights
    return ProcessExecutor(n_processes) if n_processes > 1 and can_start_processes else SerialExecutor()


def make_work_context(
    rejects: Rejects, threads: int | None, ray: str | None = None, *paths: Path | None
) -> "WorkContext":
    """Make the context of work: an executor, progress on the terminal, and the list of rejects."""
    from wsabie.features.base.sampling import WorkContext

    return WorkContext(make_executor(threads, ray, *paths), TerminalProgress(), rejects)


class OutputOptions(Options, panel="Output"):
    """Options of commands that report in JSON."""

    json: bool = option("One JSON document on standard output.")

    def show_json(self, document: object) -> bool:
        """Print the document of a command in JSON if that is asked for; return True then."""
        if self.json:
            show_json({"schema": 1, **convert_records(document)})
        return self.json

    def check_outputs(
        self, *results: tuple[OutputKind, Path | None], inputs: Iterable[Path | None] = (), folder: Path | None = None
    ) -> None:
        """Check before the work that the list of rejects and other results can be written and destroy nothing."""
        check_output_paths(("rejects", getattr(self, "rejects", None)), *results, inputs=inputs, folder=folder)


class ListedRejectOptions(OutputOptions):
    """Options of commands that always go on after bad input, and can list it."""

    rejects: RejectFile = None

    @contextmanager
    def collect_rejects(self) -> Iterator[Rejects]:
        """Collect what the block skips; report it at its end, and list it in a file if one is given."""
        rejects = Rejects(strict=getattr(self, "strict", False))
        try:
            yield rejects
        except BaseException:
            if len(rejects):  # an empty list must not replace an older one
                try:
                    self._report_rejects(rejects)
                except InputError as error:
                    print_note(str(error))
            raise
        self._report_rejects(rejects)

    def _report_rejects(self, rejects: Rejects) -> None:
        if self.rejects is not None:
            rejects.write(self.rejects)
        if len(rejects):
            hint = f" (listed in {self.rejects})" if self.rejects else "; --rejects FILE lists them"
            print_note(rejects.summary() + hint)


class RejectOptions(ListedRejectOptions):
    """Options of commands that skip bad input, or stop at it."""

    strict: Strict = False


class DataOptions(RejectOptions):
    """Options of commands that read data."""

    data_format: str | None = option(
        "Format of the data, as `wsabie info FILE` names it (default: the one that fits best).",
        flag="--format",
        metavar="NAME",
    )

    def open_data(self, path: Path, rejects: Rejects, *selection: Any, **reading: Any) -> "Source":
        """Open the source at a path, in the stated format, as `inputs.open_data` does."""
        return open_data(path, rejects, *selection, data_format=self.data_format, **reading)


def _set_device(device: str | None) -> str | None:
    """Let the image encoders of this process, and of those that it starts, run on a device."""
    if device is not None:
        os.environ[DEVICE_VARIABLE] = device
    return device


class ThreadOptions(Options, panel="Machine"):
    """Options of commands that use several cores."""

    threads: int | None = option("Threads (default: all cores).", min=1, max=MAX_THREADS)
    device: str | None = option(
        "Device of image encoders, such as cuda (default: cpu).", callback=_set_device, metavar="NAME"
    )

    def make_executor(self, *paths: Path | None) -> Executor:
        """Make the executor of the work; all nodes of a cluster have to see the paths."""
        return make_executor(self.threads, getattr(self, "ray", None), *paths)

    def resources(self, *paths: Path | None, **others: object) -> Settings:
        """Return the parameters `executor` and `progress` of the work, and others."""
        return {"executor": self.make_executor(*paths), "progress": TerminalProgress(), **others}


class SeededThreadOptions(ThreadOptions):
    """Options of commands that use several cores and draw at random by a seed that is 0 if none is given."""

    seed: Seed = 0


class RunOptions(ThreadOptions):
    """Options of commands that use several cores and draw at random."""

    seed: OptionalSeed = None

    def run_settings(self) -> Settings:
        """Return the stated parameters of estimators: threads and seed."""
        return {name: value for name, value in list_stated(self).items() if name in ("threads", "seed")}


class ModelClusterOptions(ThreadOptions):
    """Options of commands that ask a model on several cores or machines; a space works in this process."""

    ray: Annotated[RayAddress, Scope(space="a space works in this process")] = None


class ClusterRunOptions(RunOptions):
    """Options of commands that work on several machines and draw at random."""

    ray: RayAddress = None


class HierarchyOptions(Options, panel="Labels"):
    """Options of commands that know siblings of labels."""

    hierarchy: list[Path] | None = option(
        "Is-a list (child TAB parent, WordNet's files, a collection with categories) that says which labels are "
        "siblings; several complete each other.",
        metavar="<path>",
    )
    parent_first: bool = option("Pairs in --hierarchy name the parent first.")

    @property
    def names(self) -> str:
        """Paths of the lists, for messages."""
        return " and ".join(map(str, self.hierarchy or ()))

    @cached_property
    def tree(self) -> "Hierarchy | None":
        """Hierarchy of the lists; None without a list."""
        from wsabie.io.vocabulary.hierarchy_files import read_hierarchy

        if self.hierarchy:
            return read_hierarchy(*self.hierarchy, parent_first=self.parent_first)
        if self.parent_first:
            raise InputError("--parent-first says how --hierarchy is written; add --hierarchy FILE, or leave it out")
        return None


_EXTRACTOR_PARAMETERS = {"components": "n_components", "landmarks": "n_landmarks", "sample_rate": "rate"}
"""Parameters of feature extractors by option, where the names differ."""


class FeatureNameOptions(Options, panel="Features of pictures, sounds and documents"):
    """Option of the kinds of features."""

    features: str | None = option(
        f"Features of pictures, side by side if several: {list_extractor_names('pictures')}, or an encoder of "
        "`wsabie encoders` (default: auto, which is lite0 where it is installed and visual-words elsewhere); of "
        f"sounds: {list_extractor_names('sounds')} (default: both); of documents: {list_extractor_names('documents')}.",
        metavar="NAMES",
    )


class NetworkOptions(Options, panel="Features of pictures, sounds and documents"):
    """Options of encoders."""

    crop: float | None = option(
        "Centred share of a picture's sides that counts; the rest is margin for --augment (default: 1).",
        parser=parse_positive,
        metavar="SHARE",
    )
    normalise: Literal["imagenet", "clip", "symmetric", "unit", "bytes", "lite"] | None = option(
        "Values that an ONNX model was trained with (default: imagenet; of an encoder by name, its own)."
    )
    output: str | None = option(
        "Output of a network (default: its first, or the encoder's).", flag="--onnx-output --output", metavar="NAME"
    )


class FeatureOptions(FeatureNameOptions):
    """Options of the features of pictures, sounds and documents."""

    components: int | None = option("Reduce features to N kernel components.", min=1, metavar="N")
    landmarks: Landmarks = None
    n_words: int | None = option(
        "Number of words (default: 10,000 of pictures, 2,000 of sounds, 1,000,000 of documents; fewer for few).", min=2
    )
    size: int | None = option("Longer side of pictures, in pixels (default: 256).", min=16, max=4096)
    sample_rate: int | None = option(
        "Samples a second of sounds (default: the collection's, at most 22,050).", min=1_000, max=192_000
    )

    def settings(self) -> Settings:
        """Return the stated parameters of feature extractors."""
        return {_EXTRACTOR_PARAMETERS.get(name, name): value for name, value in list_stated(self).items()}

    def refuse_rows(self, source: "Source | ShardedFeatureTable", path: Path) -> None:
        """Refuse stated options for data that are rows of features already."""
        if not hasattr(source, "modality") and (stated := list_stated(self)):
            flag = "--" + next(iter(stated)).replace("_", "-")
            reason = f"{flag} is for pictures, sounds and documents, and {path} holds rows of features"
            raise InputError(f"{reason}; leave {flag} out")


class ExtractionOptions(NetworkOptions, FeatureOptions):
    """Options of features, with those of augmentation and of ONNX models."""

    augment: int | None = option("Extra flipped, cropped, shifted versions of each picture (default: 0).", min=0)


class ItemOptions(Options, panel="Features of pictures, sounds and documents"):
    """Options about marked regions of pictures."""

    items: Items = None
    image_label: str | None = option(
        "Of COCO and Pascal VOC: full pictures are items too, with this label.", metavar="LABEL"
    )
