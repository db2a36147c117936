"""Registry of all feature extractors, by name and by the kind in their folders."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError, ModelFolderError, require
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.encoders.encoder_list import HUB_ENCODERS
from wsabie.features.extractor_choice import AUTO, choose_picture_features
from wsabie.features.extractors.audio_words import MfccWords, SaiWords
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.features.extractors.composite_extractors import ConcatenatedFeatures, KernelPcaExtractor
from wsabie.features.extractors.onnx_encoders import ConseEncoder, HubEncoder, Lite0Encoder, OnnxEncoder
from wsabie.features.extractors.pyramid_histograms import ColourHistograms, HogFeatures, Textons
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.features.kernel_pca import KernelPca
from wsabie.io.records import ItemSource, ModalityName
from wsabie.storage.model_folder import ModelState, open_model_folder
from wsabie.vocabulary.name_suggestions import find_closest_names

EXTRACTORS: tuple[type[FeatureExtractor], ...] = (
    VisualWords, ColourHistograms, Textons, HogFeatures, Lite0Encoder, OnnxEncoder, MfccWords, SaiWords, BagOfWords,
)  # fmt: skip
"""Extractors that stand alone or in a concatenation."""

DEFAULT_EXTRACTORS: dict[ModalityName, str] = {"pictures": AUTO, "sounds": "mfcc,sai", "documents": "words"}
"""Default extractor of each modality."""

_EXTRACTORS_BY_NAME: dict[str, type[FeatureExtractor]] = {
    **{kind.name: kind for kind in EXTRACTORS}, **dict.fromkeys(HUB_ENCODERS, HubEncoder)
}  # fmt: skip
_NAMELESS: tuple[type[FeatureExtractor], ...] = (ConcatenatedFeatures, KernelPcaExtractor, ConseEncoder, HubEncoder)
_EXTRACTORS_BY_KIND: dict[str, type[FeatureExtractor]] = {kind.kind: kind for kind in EXTRACTORS + _NAMELESS}
_DEFAULTS = {"n_words": "auto"}


def create_extractor(
    extractor_names: str | None = None,
    *,
    modality: ModalityName = "pictures",
    source: ItemSource | None = None,
    **options: Any,
) -> FeatureExtractor:
    """Create the extractor of a list of names; each part takes the options that it has.

    Parameters
    ----------
    extractor_names : str or None
        Names with commas between, or "auto": the features that suit the pictures. None: the default of the modality.
    modality : {"pictures", "sounds", "documents"}
        Modality of the items, where there is no `source`.
    source : ItemSource or None
        The items, of which "auto" looks at the first.
    **options
        Parameters of the parts (size, crop, seed, n_words, weighting, normalise, output ...), and `balance` where there
        are several. The number of words is "auto" unless it is given. With `n_components`, the width of the rows
        that kernel PCA makes of all that, come `n_landmarks` and, for several, "mass" as the `balance`.

    Returns
    -------
    FeatureExtractor
        Not fitted.

    Raises
    ------
    InputError
        An unknown name, one that comes twice, or an option that none of the parts has.

    Examples
    --------
    >>> create_extractor("colour,hog", size=128).name
    'colour,hog'
    >>> create_extractor("colour,hog", n_components=256).name
    'components of colour,hog'
    >>> create_extractor("color")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    wsabie.core.errors.InputError: there are no features called 'color'; did you mean 'colour'? There are ...
    """
    modality = modality if source is None else source.modality
    extractor_names = extractor_names or DEFAULT_EXTRACTORS[modality]
    if extractor_names == AUTO:
        extractor_names = choose_picture_features(source, options)
    words = [word.strip() for word in extractor_names.split(",") if word.strip()]
    kinds = [_find_extractor(word) for word in words]
    names = [word.partition(":")[0] for word in words]
    for name in names:
        require(names.count(name) == 1, f"{extractor_names!r} names {name} twice; name it once")
    if len(modalities := {kind.modality for kind in kinds}) > 1:
        raise InputError(
            f"{extractor_names!r} names features of {' and of '.join(sorted(modalities))}; name those of one"
        )
    require(bool(kinds), f"no features are named; choose from {', '.join(_EXTRACTORS_BY_NAME)}")
    if len(kinds) < 2 and "balance" in options:
        raise InputError(
            f"balance weighs several features against each other, and {extractor_names!r} is one; leave it out"
        )
    pca = _take_pca_options(options)
    balance = options.pop("balance", "length" if pca is None else "mass")  # a kernel of histograms compares mass
    supported_names = [set(inspect.signature(kind).parameters) for kind in kinds]
    for option in options:
        if not any(option in names for names in supported_names):
            raise InputError(f"{option.removeprefix('n_')} is not an option of {extractor_names}; leave it out")
    settings = {**_DEFAULTS, **options}
    parts = [
        _create_part(kind, word, {n: v for n, v in settings.items() if n in names})
        for kind, word, names in zip(kinds, words, supported_names, strict=True)
    ]
    extractor = parts[0] if len(parts) == 1 else ConcatenatedFeatures(parts, balance)
    return extractor if pca is None else KernelPcaExtractor(extractor, pca)


def _take_pca_options(options: dict[str, Any]) -> KernelPca | None:
    """Take the options of kernel PCA out and return its map, or None."""
    if "n_components" not in options:
        if "n_landmarks" in options:
            raise InputError("landmarks are those of kernel components; give components too, or leave landmarks out")
        return None
    pca_options = {name: options.pop(name) for name in ("n_components", "n_landmarks") if name in options}
    return KernelPca(**pca_options, **{name: options[name] for name in ("seed",) if name in options})


def _find_extractor(word: str) -> type[FeatureExtractor]:
    name = word.partition(":")[0]
    if name not in _EXTRACTORS_BY_NAME:
        near = find_closest_names(name, tuple(_EXTRACTORS_BY_NAME), n=1)
        hint = f"did you mean {near[0]!r}? There are" if near else "choose from"
        raise InputError(f"there are no features called {name!r}; {hint} {', '.join(_EXTRACTORS_BY_NAME)}")
    if (":" in word) != (_EXTRACTORS_BY_NAME[name] is OnnxEncoder):
        raise InputError(f"{word!r} names no features; write onnx:FILE for a network, and only the name otherwise")
    return _EXTRACTORS_BY_NAME[name]


def _create_part(kind: type[FeatureExtractor], word: str, options: Mapping[str, Any]) -> FeatureExtractor:
    files = {OnnxEncoder: {"model": word.partition(":")[2]}, HubEncoder: {"encoder": word}}
    return kind(**{**files.get(kind, {}), **options})


def restore_extractor(state: ModelState) -> FeatureExtractor:
    """Return the extractor of a saved state of any kind.

    Raises
    ------
    ModelFolderError
        The kind is unknown, or the version is another.
    """
    if state.kind not in _EXTRACTORS_BY_KIND:
        raise ModelFolderError(
            f"this is a {state.kind!r} and no extractor of pictures, sounds or documents; give the folder of one"
        )
    return _EXTRACTORS_BY_KIND[state.kind].from_state(state)


def load_extractor(path: str | Path) -> FeatureExtractor:
    """Load a saved extractor of any kind.

    Raises
    ------
    ModelFolderError
        Missing, damaged, something else, or of another version.
    """
    return restore_extractor(open_model_folder(path))
