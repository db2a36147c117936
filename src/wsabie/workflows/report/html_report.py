"""A self-contained HTML file about one comparison, readable on a phone, in light and dark, offline."""

from dataclasses import replace
from pathlib import Path

from wsabie.core.errors import InputError, UnreadableItemError
from wsabie.storage.atomic_files import write_text
from wsabie.workflows.report import report_charts
from wsabie.workflows.report.examples import render_thumbnail
from wsabie.workflows.report.html_pages import EncodedImage, render_page
from wsabie.workflows.report.report_input import ReportExample, ReportInput

PICTURE_BYTES = 2_000_000
"""Bytes of all images in a report, which keeps the file below 3 MB."""

_MAX_IMAGE_BYTES = 48_000
_MAX_TRUE_LABELS = 120
"""True labels that a card lists; the remaining ones are counted."""


def write_report(path: str | Path, report: ReportInput) -> int:
    """Write the report, atomically.

    Parameters
    ----------
    path : path
    report : ReportInput
        Large images are shrunk. If all of them together still exceed `PICTURE_BYTES`, the last examples are left out,
        and the report says so.

    Returns
    -------
    int
        Bytes of the file.

    Raises
    ------
    InputError
        The file cannot be written, no model took part in the comparison, or an image cannot be shown.
    """
    html = render_report(report)
    write_text(path, html)
    return len(html.encode())


def render_report(report: ReportInput) -> str:
    """Return the report as HTML."""
    report, comparison, main = _fit_images(report), report.comparison, report.comparison.main
    if main is None:
        reasons = [f": {omission.reason}" for omission in comparison.skipped]
        raise InputError(f"no model took part in the comparison{reasons[0] if reasons else '; compare it too'}")
    entries = sorted(comparison.entries, key=lambda entry: entry is not main)  # the position sets the colour
    k, n_labels = report_charts.choose_list_length(comparison), comparison.task.facts.labels
    judged = (report_charts.judge_main_model(comparison, main, name) for name in comparison.metrics)
    verdicts = {verdict.metric: verdict for verdict in judged if verdict is not None}
    return render_page(
        "report.html",
        report=report,
        comparison=comparison,
        counts=comparison.task.facts,
        entries=entries,
        item=report.modality.removesuffix("s"),
        k=k,
        headline=report_charts.format_headline(comparison, main, report.modality),
        verdicts=verdicts,
        gain=report_charts.format_gain(verdicts[f"p@{k}"], k if k > 1 else 100) if f"p@{k}" in verdicts else "",
        parameters=sorted({**entries[0].parameters, **report.parameters}.items()),
        precision_chart=report_charts.draw_precision_chart(comparison, entries),
        difference_chart=report_charts.draw_difference_chart(entries[0].title, [*verdicts.values()]),
        frequency=report_charts.collect_frequency_figures(report, main),
        training=report_charts.collect_training_figures(report.history, n_labels) if report.history else None,
        max_true_labels=_MAX_TRUE_LABELS,
    )


def _fit_images(report: ReportInput) -> ReportInput:
    """Shrink images, and keep as many examples as the file has room for."""
    examples: list[ReportExample] = []
    room = PICTURE_BYTES
    for example in report.examples:
        heat_maps = [heat_map._replace(picture=shrink_report_image(heat_map.picture)) for heat_map in example.heat_maps]
        small_example = replace(example, picture=shrink_report_image(example.picture), heat_maps=heat_maps)
        images = small_example.picture, *(heat_map.picture for heat_map in heat_maps)
        room -= sum(len(image.content) for image in images)
        if room < 0:
            break
        examples.append(small_example)
    left_out = len(report.examples) - len(examples)
    note = report.examples_note + (f" {left_out} more were left out to keep this file small." if left_out else "")
    return replace(report, examples=examples, examples_note=note)


def shrink_report_image(image: EncodedImage) -> EncodedImage:
    """Shrink an image that is larger than a report needs.

    Raises
    ------
    InputError
        It must be shrunk and cannot be read.
    """
    if len(image.content) <= _MAX_IMAGE_BYTES:
        return image
    try:
        return render_thumbnail(image.content)
    except UnreadableItemError as error:
        raise InputError(f"a picture for the report cannot be read ({error.reason}); leave it out") from error
