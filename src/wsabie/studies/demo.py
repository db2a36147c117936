"""The demonstration: from the bundled pictures to a model, a comparison with baselines and a report."""

import unicodedata
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.splits import Split, split
from wsabie.features.visual_terms import VisualTerms
from wsabie.models.annotator import Annotator
from wsabie.samples import bundled_parts, sample_path
from wsabie.sources.fingerprint import fingerprint, marks_of
from wsabie.sources.is_a import read_hierarchy
from wsabie.sources.open import open_source
from wsabie.sources.records import Item, ItemList, Rows
from wsabie.storage.rejects import Rejects
from wsabie.studies.compare import compare
from wsabie.studies.comparison import Comparison
from wsabie.studies.entrants import entrants
from wsabie.studies.gather import SPREAD, with_model
from wsabie.studies.pictures import describe_split, picture_examples
from wsabie.studies.report import write_report
from wsabie.studies.report_input import DataFacts, ReportInput

N_TERMS = 3000
SIZE = 128
MIN_PICTURES = 2
SHOWN_LABELS = (
    "star", "ship", "clock", "hond", "gato", "lune", "pomme", "book", "train", "flower", "house", "computer",
)  # fmt: skip
DESCRIPTION = {
    "emoji": "Noto Color Emoji at 96 pixels, labelled by the Unicode CLDR in 25 languages, so that one picture "
    "carries synonyms and translations as labels of their own.",
    "drawings": "Open Clip Art at 128 pixels, tagged by the people who drew it: noisy, uneven, English.",
}
LICENCE = {"emoji": "SIL Open Font License 1.1 (pictures), Unicode License v3 (labels)", "drawings": "public domain"}


@dataclass(frozen=True)
class Demonstration:
    """What a run made.

    Attributes
    ----------
    comparison : Comparison
    model : Path
        Folder of the annotator.
    report : Path
        HTML file.
    """

    comparison: Comparison
    model: Path
    report: Path


def demonstrate(
    out: Path,
    *,
    part: str = "all",
    threads: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Demonstration:
    """Train on the bundled sample, compare on held-out groups of pictures, and write model and report into `out`.

    Parameters
    ----------
    out : Path
    part : {"emoji", "drawings", "all"}
        "all" is every part that this install bundles.

    Raises
    ------
    InputError
        The part is unknown or not bundled.
    """
    pictures = sample_pictures(part)
    terms, rows, sides = described_sample(pictures, seed=seed, executor=executor, progress=progress)
    train, valid, test = (rows.take(side) for side in (sides.train, sides.valid, sides.test))
    taking_part = entrants(["wsabie", "nearest", "popularity"], seed=seed, threads=threads)
    found = compare(train, valid, test, taking_part, min_rows=MIN_PICTURES, seed=seed, progress=progress)
    facts = _facts(part, rows, seed)
    annotator = Annotator(found["wsabie"].model, terms, None, facts, rows.dictionary, marks_of(train))
    annotator.save(out / "model")
    report = out / "report.html"
    write_report(report, _report_input(found, terms, pictures, part, seed))
    return Demonstration(found, out / "model", report)


def sample_pictures(part: str) -> ItemList:
    """The bundled pictures of a part, or of all parts together."""
    names = parts_of(part)
    pictures: list[Item] = []
    for name in names:
        source = open_source(sample_path(name))
        if not isinstance(source, Rows):
            pictures += source
    return ItemList(sample_path(names[0]), pictures)


def parts_of(part: str) -> list[str]:
    """The names of the bundled parts that "all" or a name stands for."""
    return list(bundled_parts()) if part == "all" else [part]


def described_sample(
    pictures: ItemList, *, seed: int = 0, executor: Executor | None = None, progress: Progress = SILENT
) -> tuple[VisualTerms, Rows, Split]:
    """A dictionary learnt from the training side of a split by group, all pictures as rows of it, and the split.

    A bundled picture that cannot be read is an error.
    """
    terms = VisualTerms(n_terms=N_TERMS, size=SIZE, seed=seed)
    rows, sides = describe_split(
        pictures,
        terms,
        lambda rows: split(len(rows), by="group", ids=rows.ids, groups=rows.groups, seed=seed),
        executor=executor,
        progress=progress,
        rejects=Rejects(strict=True),
    )
    return terms, rows, sides


def _facts(part: str, rows: Rows, seed: int) -> dict[str, Any]:
    return {
        "source": f"bundled sample, part {part!r}",
        "fingerprint": fingerprint(rows),
        "rows": len(rows),
        "split": f"by group, a tenth each for validation and test, seed {seed}",
    }


def _report_input(found: Comparison, terms: VisualTerms, pictures: ItemList, part: str, seed: int) -> ReportInput:
    entry, test = found["wsabie"], found.task.test
    similar = read_hierarchy(*map(sample_path, parts_of(part))).similar(test.label_names)
    names = parts_of(part)
    given = ReportInput(
        title="Annotating pictures with a joint embedding",
        comparison=found,
        things="pictures",
        data=DataFacts(
            name=" and ".join(names),
            description=" ".join(DESCRIPTION[name] for name in names),
            source="Debian packages openclipart-svg, fonts-noto-color-emoji, unicode-cldr-core",
            licence="; ".join(f"{name}: {LICENCE[name]}" for name in names),
            split="By group (one concept, or one drawing with its variants), a tenth each for validation and test, "
            f"seed {seed}.",
        ),
        examples=picture_examples(entry, test, pictures, terms, title=title_of, similar=similar),
        examples_note=SPREAD,
        neighbours_note="These labels were chosen by hand, before the model was trained, to show several languages.",
        siblings_note="most of their pictures lie in one category of the collection, which training did not see",
        label_notes=languages_of_labels() if "emoji" in names else {},
        command=f"wsabie demo --part {part} --seed {seed}",
        created=date.today().isoformat(),
    )
    return with_model(given, SHOWN_LABELS, similar)


def title_of(picture_id: str) -> str:
    """What a bundled picture is called: the Unicode name of an emoji, the file name of a drawing.

    Examples
    --------
    >>> title_of("emoji-1f42c"), title_of("drawing-animals/birds/blue_bird_01")
    ('dolphin', 'blue bird 01')
    """
    kind, _, rest = picture_id.partition("-")
    if kind != "emoji":
        return rest.rpartition("/")[2].replace("_", " ").strip()
    named = [unicodedata.name(chr(int(code, 16)), "") for code in rest.split("-")]
    return " ".join(name.lower() for name in named if name and "SELECTOR" not in name and "JOINER" not in name)


def languages_of_labels(most: int = 3) -> dict[str, str]:
    """For each emoji label the languages that use it, at most a few."""
    import pyarrow.parquet as pq

    table = pq.read_table(sample_path("emoji"), columns=["labels", "languages"]).to_pydict()
    found: dict[str, dict[str, None]] = {}
    for labels, languages in zip(table["labels"], table["languages"], strict=True):
        for label, codes in zip(labels, languages, strict=True):
            found.setdefault(label, {}).update(dict.fromkeys(codes))
    return {label: " ".join([*codes][:most]) for label, codes in found.items()}
