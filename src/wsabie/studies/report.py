"""One self-contained HTML file about one comparison: readable on a phone, in light and dark, without a network."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.features.decode import RejectedItem
from wsabie.storage.atomic import write_text
from wsabie.studies.html import about, labels, models, pictures, training
from wsabie.studies.html.markup import join
from wsabie.studies.html.page import Section, page
from wsabie.studies.pictures import thumbnail
from wsabie.studies.report_input import Example, HeatMap, Image, ReportInput

PICTURE_BYTES = 2_000_000
"""Encoded pictures that one report holds, so that the file stays below 3 MB."""

_LARGE = 48_000


def write_report(path: str | Path, given: ReportInput) -> int:
    """Write the report, atomically.

    Parameters
    ----------
    path : path
    given : ReportInput
        Large pictures are made smaller; when all of them together are still more than `PICTURE_BYTES`, the last
        examples are left out, and the report says so.

    Returns
    -------
    int
        Bytes of the file.

    Raises
    ------
    InputError
        The file cannot be written, the main model is not in the comparison, or a picture cannot be shown.
    """
    html = render(given)
    write_text(path, html)
    return len(html.encode())


def render(given: ReportInput) -> str:
    """The report as a string."""
    given = _fitting(replace(given, main=_main(given)))
    made = [
        pictures.examples(given),
        labels.neighbours(given),
        pictures.heat_maps(given),
        models.models(given),
        labels.frequency(given),
        training.training(given),
        about.data(given),
        about.reproduce(given),
    ]
    sections: Sequence[Section] = [section for section in made if section is not None]
    footer = join("Made by wsabie. This file is complete in itself: it loads nothing and sends nothing.")
    return page(given.title, about.header(given), sections, footer)


def _main(given: ReportInput) -> str:
    """The name of the entry that the report is about."""
    comparison = given.comparison
    if given.main in [entry.name for entry in comparison.entries]:
        return given.main
    if given.main or comparison.main is None:
        reasons = [f": {s.reason}" for s in comparison.skipped if s.name == given.main or not given.main]
        what = f"the report is about {given.main!r}, which took no part" if given.main else "no model took part"
        raise InputError(f"{what} in the comparison{reasons[0] if reasons else '; compare it too'}")
    return comparison.main.name


def _fitting(given: ReportInput) -> ReportInput:
    """The input with small pictures, and only as many examples as there is room for."""
    kept: list[Example] = []
    room = PICTURE_BYTES
    for example in given.examples:
        smaller = replace(
            example,
            picture=shrunk(example.picture),
            heat_maps=[HeatMap(h.label, shrunk(h.picture), h.score) for h in example.heat_maps],
        )
        room -= sum(len(image.content) for image in (smaller.picture, *(h.picture for h in smaller.heat_maps)))
        if room < 0:
            break
        kept.append(smaller)
    left_out = len(given.examples) - len(kept)
    note = given.examples_note + (f" {left_out} more were left out to keep this file small." if left_out else "")
    return replace(given, examples=kept, examples_note=note)


def shrunk(image: Image) -> Image:
    """The picture, made smaller when it is larger than a report needs.

    Raises
    ------
    InputError
        It has to be made smaller and cannot be read.
    """
    if len(image.content) <= _LARGE:
        return image
    try:
        return thumbnail(image.content)
    except RejectedItem as error:
        raise InputError(f"a picture for the report cannot be read ({error.reason}); leave it out") from error
