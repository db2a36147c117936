"""Commands that use a finished model: evaluate, annotate, neighbours, info."""

from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import executor, loaded, opened, settle, tell_unknown
from wsabie.faces.cli.epochs import show_epochs
from wsabie.faces.cli.terminal import TerminalProgress, note, out, show_json, show_table
from wsabie.sources.records import PictureList, Rows, Source, groups_of
from wsabie.storage.atomic import refuse_unwritable
from wsabie.storage.rejects import Rejects

SHOWN = ("p@1", "p@5", "p@10", "recall@10", "recall@50", "MAP", "MRR", "ndcg@10", "AUC")
BLOCK_ROWS = 512


def evaluate_command(
    model: Path,
    data: Path,
    allow_overlap: bool,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Score every row that carries a known label and print the metrics with bootstrap intervals."""
    from wsabie.evaluation.bootstrap import bootstrap_all
    from wsabie.evaluation.evaluate import evaluate_scores
    from wsabie.sources.fingerprint import fingerprint

    refuse_unwritable(rejects_file)
    annotator, rejects, progress = loaded(model, threads), Rejects(strict=strict), TerminalProgress()
    source = opened(data, rejects)
    aligned = annotator.rows(source, executor=executor(threads), progress=progress, rejects=rejects)
    rows = aligned.rows
    if not allow_overlap and annotator.facts.get("fingerprint") in (fingerprint(source), fingerprint(rows)):
        raise InputError(f"{data} is what the model was trained on; give other data, or add --allow-overlap")
    found = evaluate_scores(_score_blocks(annotator.model, rows, progress), rows.Y, ks=(1, 5, 10, 50))
    intervals = bootstrap_all(
        {name: found.per_row[name] for name in SHOWN if name in found.per_row}, groups=groups_of(rows, found.rows)
    )
    settle(rejects, rejects_file)
    if json:
        bounds = {name: [i.low, i.high] for name, i in intervals.items()}
        unknown = {"labels": len(aligned.unknown_labels), "pairs": aligned.unknown_pairs}
        show_json({**found.as_dict(), "intervals": bounds, "unknown": unknown})
        return
    tell_unknown(aligned, data)
    lines = [
        [name, f"{i.mean:.4f}", f"{i.low:.4f} to {i.high:.4f}", _ceiling(found.ceilings, name)]
        for name, i in intervals.items()
    ]
    show_table(
        f"{found.n_rows:,} rows, {found.n_labels:,} labels",
        ["metric", "value", "95 % interval", "highest possible"],
        lines,
    )


def _ceiling(ceilings: dict[str, float], name: str) -> str:
    return f"{ceilings[name]:.4f}" if name in ceilings else ""


def _score_blocks(model: Any, rows: Rows, progress: TerminalProgress) -> Any:
    with progress.stage("scoring", len(rows), "rows") as stage:
        for lo in range(0, len(rows), BLOCK_ROWS):
            block = rows.X[lo : lo + BLOCK_ROWS]
            yield lo, model.scores(block)
            stage.advance(block.shape[0])


def annotate_command(
    model: Path,
    inputs: list[Path],
    k: int,
    explain: Path | None,
    label: str | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Rank labels for every input, one line each."""
    if label is not None and explain is None:
        raise InputError("--label chooses what --explain draws; add --explain FOLDER, or leave --label out")
    refuse_unwritable(rejects_file, None if explain is None else explain / "heat.png")
    annotator, rejects, progress = loaded(model, threads), Rejects(strict=strict), TerminalProgress()
    if label is not None:
        annotator.model.vocabulary_.ids([label])  # refuses an unknown label before any work
    results: list[dict[str, Any]] = []
    drawn = 0
    for source in _sources(inputs, rejects):
        aligned = annotator.rows(source, executor=executor(threads), progress=progress, rejects=rejects)
        rows = aligned.rows
        if len(rows):
            ranked = annotator.model.annotate(rows.X, k)
            results += [
                {"id": i, "labels": [[name, round(s, 6)] for name, s in top]}
                for i, top in zip(rows.ids, ranked, strict=True)
            ]
        if explain is not None:
            drawn = _explain(annotator, source, explain, label, drawn)
    settle(rejects, rejects_file)
    if not results:
        raise InputError("nothing could be annotated; give pictures or rows in a format that `wsabie train` reads")
    if json:
        show_json({"schema": 1, "model": str(model), "results": results, "skipped": len(rejects)})
        return
    for result in results:
        out.print(
            f"{result['id']}\t" + "  ".join(f"{name} {score:.2f}" for name, score in result["labels"]),
            markup=False,
        )


def _sources(inputs: list[Path], rejects: Rejects) -> list[Source]:
    """Every input opened; pictures that were named one by one make one source."""
    sources = [opened(path, rejects, labels_from="none") for path in inputs]
    single = [source for source in sources if isinstance(source, PictureList) and source.path.is_file()]
    if len(single) < 2:
        return sources
    together = PictureList(inputs[0], [picture for source in single for picture in source])
    return [together] + [source for source in sources if source not in single]


def _explain(annotator: Any, source: Source, folder: Path, label: str | None, number: int) -> int:
    """Heat maps of where a label is seen, one PNG per picture, numbered from `number`; returns the next number."""
    from wsabie.features.decode import RejectedPicture
    from wsabie.models.explain import explain_picture

    if isinstance(source, Rows) or annotator.terms is None:
        raise InputError("--explain draws on pictures; this input is rows of features")
    for picture in source:
        try:
            explained = explain_picture(annotator, picture.content, label)
        except RejectedPicture:
            continue  # it is on the list already
        file = folder / f"{number:04d}-{Path(picture.id).stem[:60]}-{_file_name(explained.label)}.png"
        explained.save(file)
        note(f"{file}: {explained.label} {explained.score:.2f}")
        number += 1
    return number


def _file_name(label: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in label)[:40]


def neighbours_command(model: Path, label: str, k: int, json: bool) -> None:
    """Print the labels nearest to a label."""
    near = loaded(model).model.neighbours(label, k)
    if json:
        show_json({"schema": 1, "label": label, "neighbours": [[name, round(cosine, 6)] for name, cosine in near]})
        return
    show_table(f"nearest to {label}", ["label", "cosine"], [[name, f"{cosine:.3f}"] for name, cosine in near])


def info_command(model: Path, epochs: bool, json: bool) -> None:
    """Print what a model is."""
    from wsabie.storage.folder import folder_bytes

    annotator = loaded(model)
    estimator = annotator.model
    space = estimator.space_
    facts: dict[str, Any] = {
        "labels": space.n_labels,
        "features": space.n_features,
        "dimensions": space.dim,
        "similarity": space.similarity,
        "pictures": annotator.terms is not None,
        "bytes": folder_bytes(model),
        "bytes_of_points": space.nbytes,
        "epochs": len(estimator.history_),
        "validation_map": max((s.validation for s in estimator.history_ if s.validation is not None), default=None),
        **annotator.facts,
    }
    if json:
        more: dict[str, Any] = {
            "parameters": estimator.to_parts().config["parameters"],
            "settings": estimator.settings_,
        }
        if epochs:
            more["history"] = [stats.as_dict() for stats in estimator.history_]
        show_json({"schema": 1, "model": str(model), **facts, **more})
        return
    show_table(str(model), ["", ""], [[name.replace("_", " "), _shown(value)] for name, value in facts.items()])
    if epochs:
        show_epochs(estimator.history_)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)
