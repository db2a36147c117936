"""Runs that describe the same pictures, or the same sounds, in several ways (slide "Using Better Features")."""

from collections.abc import Mapping
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

SOUNDS = {"mfcc": "mfcc", "mfcc+sai": "mfcc,sai"}
"""The same for sounds."""


def features_compared(record: Record, setting: Setting, descriptions: Mapping[str, str] = DESCRIPTIONS) -> Findings:
    """Every entry, "model, features", fitted and judged on the same things, described by its features.

    Raises
    ------
    InputError
        The rows are nothing that can be described.
    """
    data = setting.given
    if data.described is None:
        things, wants = "pictures", "a folder of pictures, or --data sample"
        if record.opening is not None:
            things, wants = "sounds", record.opening.wants
        raise InputError(f"features cannot be compared on {data.name}, whose rows are no {things}; give {wants}")
    whole = Findings([])
    for features, named in descriptions.items():
        entries = tuple(entry for entry in record.entries if entry.row.endswith(f", {features}"))
        if entries:
            described = data.described(named)
            found = compared(replace(record, entries=entries), replace(setting, data=described))
            width = f"{features}: {described.train.X.shape[1]:,} numbers ({named})."
            density, *chosen = found.notes
            notes = [*(whole.notes or [density]), width, *chosen]
            whole = Findings(
                [*whole.rows, *found.rows], whole.missing | found.missing, notes=notes, groups=found.groups
            )
    return whole


def sounds_compared(record: Record, setting: Setting) -> Findings:
    """The same with descriptions of sounds."""
    return features_compared(record, setting, SOUNDS)
