"""Names of the feature extractors by modality; `extractor_registry` has their classes."""

EXTRACTOR_NAMES = {
    "pictures": ("visual-words", "colour", "textons", "hog", "lite0", "onnx:FILE"),
    "sounds": ("mfcc", "sai"),
    "documents": ("words",),
}
"""Names for `create_extractor`, by modality."""


def list_extractor_names(modality: str) -> str:
    """Return the names of a modality with commas between.

    Examples
    --------
    >>> list_extractor_names("sounds")
    'mfcc, sai'
    """
    return ", ".join(EXTRACTOR_NAMES[modality])
