"""Runs that describe the same pictures in several ways (slide "Using Better Features")."""

from dataclasses import replace

from wsabie.base.errors import InputError
from wsabie.studies.reproduce.models import compared
from wsabie.studies.reproduce.record import Findings, Record, Setting

DESCRIPTIONS = {
    "visterms": "terms",
    "colour": "colour",
    "textons": "textons",
    "HOG": "hog",
    "better features": "terms,colour,textons,hog",
}
"""How rows are called, and the description of pictures that stands behind the name."""


def features_compared(record: Record, setting: Setting) -> Findings:
    """Every entry, "model, features", fitted and judged on the same pictures, described by its features.

    Raises
    ------
    InputError
        The rows are no pictures.
    """
    data = setting.given
    if data.described is None:
        raise InputError(
            f"features cannot be compared on {data.name}, whose rows are no pictures; give a folder of pictures, or "
            "--data sample"
        )
    whole = Findings([])
    for features, named in DESCRIPTIONS.items():
        entries = tuple(entry for entry in record.entries if entry.row.endswith(f", {features}"))
        if entries:
            described = data.described(named)
            found = compared(replace(record, entries=entries), replace(setting, data=described))
            width = f"{features}: {described.train.X.shape[1]:,} numbers a picture"
            notes = [*whole.notes, f"{width} ({named})."]
            whole = Findings(
                [*whole.rows, *found.rows], whole.missing | found.missing, notes=notes, groups=found.groups
            )
    return whole
