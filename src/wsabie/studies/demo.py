"""The demonstration: from the bundled pictures to a model, a comparison with baselines and a report."""

import unicodedata
from dataclasses import dataclass, replace
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

from wsabie.base.arrays import Int64
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.splits import Split, split
from wsabie.features.visual_terms import VisualTerms
from wsabie.models.annotator import Annotator
from wsabie.models.explain import explain_picture
from wsabie.samples import PARTS, bundled_parts, sample_path
from wsabie.sources.fingerprint import fingerprint
from wsabie.sources.open import open_source
from wsabie.sources.records import Picture, PictureList, Rows
from wsabie.storage.rejects import Rejects
from wsabie.studies.compare import compare
from wsabie.studies.comparison import Comparison
from wsabie.studies.entrants import entrants
from wsabie.studies.gather import SPREAD, examples, neighbourhoods, spread_rows
from wsabie.studies.report import write_report
from wsabie.studies.report_input import DataFacts, Example, HeatMap, Image, ReportInput

N_TERMS = 3000
SIZE = 128
MIN_PICTURES = 2
N_EXAMPLES = 24
N_HEAT_MAPS = 4
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
    annotator = Annotator(found["wsabie"].model, terms, facts=_facts(part, rows, seed))
    annotator.save(out / "model")
    report = out / "report.html"
    write_report(report, _report_input(found, annotator, pictures, part, seed))
    return Demonstration(found, out / "model", report)


def sample_pictures(part: str) -> PictureList:
    """The bundled pictures of a part, or of all parts together."""
    names = bundled_parts() if part == "all" else (part,)
    pictures: list[Picture] = []
    for name in names:
        source = open_source(sample_path(name))
        if not isinstance(source, Rows):
            pictures += source
    return PictureList(sample_path(names[0]), pictures)


def described_sample(
    pictures: PictureList, *, seed: int = 0, executor: Executor | None = None, progress: Progress = SILENT
) -> tuple[VisualTerms, Rows, Split]:
    """A dictionary learnt from the training side of a split by group, all pictures as rows of it, and the split."""
    run = executor or Serial()
    ids, groups = [p.id for p in pictures], [p.group for p in pictures]
    sides = split(len(pictures), by="group", ids=ids, groups=groups, seed=seed)
    terms = VisualTerms(n_terms=N_TERMS, size=SIZE, seed=seed)
    terms.fit(_chosen(pictures, sides.train), executor=run, progress=progress)
    return terms, _described(pictures, terms, run, progress), sides


def _chosen(pictures: PictureList, index: Int64) -> PictureList:
    return PictureList(pictures.path, [pictures.pictures[i] for i in index])


def _described(pictures: PictureList, terms: VisualTerms, run: Executor, progress: Progress) -> Rows:
    """One row per picture; a bundled picture that cannot be read is an error, for rows and pictures go by number."""
    return terms.transform(pictures, executor=run, progress=progress, rejects=Rejects(strict=True))


def _facts(part: str, rows: Rows, seed: int) -> dict[str, Any]:
    return {
        "source": f"bundled sample, part {part!r}",
        "fingerprint": fingerprint(rows),
        "rows": len(rows),
        "split": f"by group, a tenth each for validation and test, seed {seed}",
    }


def _report_input(found: Comparison, annotator: Annotator, pictures: PictureList, part: str, seed: int) -> ReportInput:
    entry = found["wsabie"]
    test = found.task.test
    by_id = {picture.id: picture for picture in pictures}
    chosen = spread_rows(entry.evaluation, N_EXAMPLES, groups=test.groups)

    def image(row: int) -> Image:
        content = by_id[test.ids[row]].content
        return Image(content if isinstance(content, bytes) else content.read_bytes(), "image/webp")

    shown = examples(
        entry,
        test,
        chosen,
        image,
        title=lambda row: title_of(test.ids[row]),
        true_labels=lambda row: by_id[test.ids[row]].labels,
    )
    names = [name for name in PARTS if part in ("all", name) and name in bundled_parts()]
    return ReportInput(
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
            facts=[
                ("pictures", f"{len(pictures):,}"),
                ("labels with two training pictures", f"{len(test.label_names):,}"),
            ],
        ),
        history=entry.model.history_,
        examples=[_with_heat(example, annotator, n) for n, example in enumerate(shown)],
        examples_note=SPREAD,
        neighbours=neighbourhoods(entry, SHOWN_LABELS),
        label_notes=languages_of_labels() if "emoji" in names else {},
        parameters={**entry.parameters, **entry.model.settings_},
        command=f"wsabie demo --part {part} --seed {seed}",
        created=date.today().isoformat(),
    )


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


def _with_heat(example: Example, annotator: Annotator, number: int) -> Example:
    """The first few examples also show where their best label is seen."""
    if number >= N_HEAT_MAPS or not example.suggestions:
        return example
    explained = explain_picture(annotator, example.picture.content, example.suggestions[0].label)
    file = BytesIO()
    explained.picture.save(file, "PNG")
    drawn = HeatMap(explained.label, Image(file.getvalue(), "image/png"), explained.score)
    return replace(example, heat_maps=(drawn,))
