"""Comparison of features of the same images, or the same audio (slide "Using Better Features")."""

from collections.abc import Mapping
from dataclasses import replace

from papers.record import PaperRecord, RunFindings, RunSettings
from papers.runs.model_tables import compare_entries
from wsabie.core.errors import InputError

DESCRIPTIONS = {
    "visterms": "visual-words",
    "colour": "colour",
    "textons": "textons",
    "HOG": "hog",
    "better features": "visual-words,colour,textons,hog",
}
"""Row names, with the image features of each."""

KERNEL_PCA, N_COMPONENTS = "Ensemble+KPCA", 1024
"""End of the row names, and most dimensions, of models on kernel components of the better features."""

SOUNDS = {"mfcc": "mfcc", "mfcc+sai": "mfcc,sai"}
"""Row names, with the audio features of each."""


def compare_image_features(
    record: PaperRecord, setting: RunSettings, descriptions: Mapping[str, str] = DESCRIPTIONS
) -> RunFindings:
    """Fit and evaluate every entry, "model, features", on the same items with its features.

    Raises
    ------
    InputError
        The rows are not images or audio.
    """
    data = setting.required_data
    if data.extract is None:
        items, data_hint = "pictures", "a folder of pictures, or --data sample"
        if record.opening is not None:
            items, data_hint = "sounds", record.opening.data_hint
        raise InputError(f"features cannot be compared on {data.name}, whose rows are not {items}; give {data_hint}")
    all_findings = RunFindings([])
    for features, feature_names in descriptions.items():
        entries = tuple(entry for entry in record.entries if entry.row.endswith(f", {features}"))
        if entries:
            extracted = data.extract(feature_names)
            findings = compare_entries(replace(record, entries=entries), replace(setting, data=extracted))
            width = f"{features}: {extracted.train.X.shape[1]:,} numbers ({feature_names})."
            density, *choice_notes = findings.notes
            notes = [*(all_findings.notes or [density]), width, *choice_notes]
            all_findings = RunFindings(
                [*all_findings.rows, *findings.rows],
                all_findings.missing | findings.missing,
                notes=notes,
                groups=findings.groups,
            )
    return all_findings


def compare_kernel_components(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Evaluate entries "model, Ensemble+KPCA" on kernel components of four features, and others on the rows."""
    data = setting.required_data
    entries = [entry for entry in record.entries if entry.row.endswith(KERNEL_PCA)]
    findings = compare_entries(
        replace(record, entries=tuple(entry for entry in record.entries if entry not in entries)), setting
    )
    if data.extract is None:
        missing = findings.missing | {entry.row: "the rows are no pictures" for entry in entries}
        return replace(findings, missing=missing)
    extracted = data.extract(DESCRIPTIONS["better features"], n_components=min(N_COMPONENTS, len(data.train)))
    more = compare_entries(replace(record, entries=tuple(entries)), replace(setting, data=extracted))
    width = f"Ensemble+KPCA: {extracted.train.X.shape[1]:,} kernel components of {DESCRIPTIONS['better features']}."
    notes = [*findings.notes, width, *more.notes[1:]]
    return replace(findings, rows=[*findings.rows, *more.rows], missing=findings.missing | more.missing, notes=notes)


def compare_audio_features(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compare features of audio."""
    return compare_image_features(record, setting, SOUNDS)
