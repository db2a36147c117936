"""Small files that ask for much memory or time, through every command that reads them: refused, or used cheaply."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults import states
from tests.faults.attacks import hostile_files as files
from tests.faults.attacks.attack import Case, Fault, Outcome
from tests.faults.attacks.hostile_uploads import upload_pictures
from tests.faults.lab import Lab, faults_of, require_success

NAME = "small-inputs"
EXCLUSIVE = True
SECONDS, MEMORY = 600.0, 4 << 30
"""Only what does not end takes as long."""
_PICTURES = (
    "collection init in --by eve",
    "collection scan in --by eve",
    "collection status in --json",
    "train in --model n --epochs 1 --dim 4 --threads 8",
    "features images in --out f.parquet --n-words 20 --threads 8",
    "annotate m in --threads 8 --json",
)
_DATA = (
    "train {data} --model n --epochs 1 --dim 4 --threads 1",
    "shards {data} --out s",
    "split {data} --out p",
    "evaluate m {data} --allow-overlap",
    "annotate m {data} --json",
    "compare {data} --models popularity",
)
_NETWORK = (
    "features onnx in/net.onnx in/photos --out f.parquet",
    "train in/photos --model n --features onnx:in/net.onnx --epochs 1 --dim 4 --threads 1",
)


@dataclass(frozen=True)
class Input:
    """Files, and the commands that read them, each begun with the same model; `refused`: none may use them."""

    make: files.Make
    words: tuple[str, ...]
    quick: bool = False
    refused: bool = False


INPUTS = (
    Input(files.float_tiffs, _PICTURES),
    Input(files.tall_webps, _PICTURES),
    Input(files.flat_avif, _PICTURES),
    Input(files.deep_pngs, _PICTURES),
    Input(files.grey_png, _PICTURES),
    Input(files.long_gif, _PICTURES),
    Input(files.wide_and_thin, _PICTURES),
    Input(files.lying_header, _DATA, quick=True, refused=True),
    Input(files.many_rows_header, _DATA, quick=True, refused=True),
    Input(files.high_column, _DATA, quick=True),
    Input(files.high_label, _DATA, quick=True),
    Input(files.gzip_bomb, _DATA, refused=True),
    Input(files.gzip_zeros, _DATA, refused=True),
    Input(files.gzip_json, _DATA, refused=True),
    Input(files.gzip_long_json, _DATA, refused=True),
    Input(files.gzip_fasttext, _DATA, refused=True),
    Input(files.nested_json, _DATA, quick=True),
    Input(files.deep_coco, _DATA, quick=True),
    Input(files.parquet_dictionary, _DATA),
    Input(files.parquet_lists, _DATA),
    Input(files.keyword_paths, _PICTURES[:3], quick=True),
    Input(files.endless_network, _NETWORK, refused=True),
    Input(files.large_network, _NETWORK, quick=True, refused=True),
    Input(files.tiling_network, _NETWORK),
    Input(
        files.pipes,
        (
            *_PICTURES,
            *(
                line.format(data=f"in/{name}")
                for name in ("data.jsonl", "data.parquet", "data.txt")
                for line in _DATA[:2]
            ),
        ),
        quick=True,
    ),
    Input(files.self_links, _PICTURES, quick=True),
    Input(files.far_times, _PICTURES[:3], quick=True),
    Input(files.odd_names, _PICTURES, quick=True),
)


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return a case of each kind of input and command; with `short` one command of those that are made quickly."""
    del seed  # there is nothing to draw
    uploads = [] if short else [Case("uploads", upload_pictures)]
    return uploads + [
        Case(f"{small_input.make.__name__}: {line.format(data='DATA')}", _try_of(small_input, number))
        for small_input in INPUTS
        if small_input.quick or not short
        for number, line in enumerate(small_input.words[:1] if short else small_input.words)
    ]


def nothing_beside(_: Lab, folder: Path) -> None:
    """An empty folder."""
    (folder / "in").mkdir()


def model_beside(lab: Lab, folder: Path) -> None:
    """A model of pictures, or of rows, and an empty folder."""
    states.pictures(lab, folder)
    require_success(lab.run(folder, "train", "photos", "--model", "m", "--n-words", "20", *states.QUICK))
    (folder / "in").mkdir()


def rows_model_beside(lab: Lab, folder: Path) -> None:
    """A model of rows, and an empty folder."""
    states.model(lab, folder)
    (folder / "in").mkdir()


def _try_of(small_input: Input, number: int) -> Callable[[Lab], Outcome]:
    return lambda lab: read_input(lab, small_input, number)


def read_input(lab: Lab, small_input: Input, number: int) -> Outcome:
    """Let one command read the files; those of a collection follow `init`."""
    model_builder = rows_model_beside if small_input.words is _DATA else model_beside
    build = model_builder if " m " in small_input.words[number] else nothing_beside
    with lab.copy(build) as folder:
        small_input.make(folder / "in")
        data = next(((f"in/{path.name}") for path in (folder / "in").glob("data.*")), "in")
        if small_input.words[number].startswith("collection") and number:
            lab.run(folder, *small_input.words[0].split(), seconds=SECONDS)
        line = small_input.words[number].format(data=data)
        result = lab.run(folder, *line.split(), seconds=SECONDS, memory=MEMORY)
        faults = faults_of(result, line)
        if not faults and result.code not in (0, 1, 2):
            faults = [Fault("unusable", f"{line} ended with exit {result.code}")]
        if not faults and small_input.refused and result.code == 0:
            faults = [Fault("unusable", f"{line} was not refused")]
        return Outcome(tuple(faults), result.memory)
