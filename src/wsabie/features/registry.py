"""Every way to describe pictures, sounds and documents, by its name and by the kind in its folder."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError, ModelFolderError
from wsabie.features.bag_of_words import BagOfWords
from wsabie.features.colour import ColourHistograms
from wsabie.features.components import Components
from wsabie.features.concatenation import Concatenation
from wsabie.features.describer import Describer
from wsabie.features.hog import Hog
from wsabie.features.kernel_pca import KernelPca
from wsabie.features.onnx_encoder import OnnxEncoder
from wsabie.features.sound_words import MfccWords, SaiWords
from wsabie.features.textons import Textons
from wsabie.features.visual_terms import VisualTerms
from wsabie.labels.names import closest
from wsabie.sources.records import Things
from wsabie.storage.folder import Parts, load_folder

SINGLE: tuple[type[Describer], ...] = (
    VisualTerms, ColourHistograms, Textons, Hog, OnnxEncoder, MfccWords, SaiWords, BagOfWords,
)  # fmt: skip
"""What may stand alone, or side by side with others."""

USUAL: dict[Things, str] = {"pictures": "terms", "sounds": "mfcc,sai", "documents": "words"}
"""How things are described where nothing else is asked for."""

_NAMED: dict[str, type[Describer]] = {kind.name: kind for kind in SINGLE}
_JOINED: tuple[type[Describer], ...] = (Concatenation, Components)
_KINDS: dict[str, type[Describer]] = {kind.kind: kind for kind in SINGLE + _JOINED}
_DEFAULTS = {"n_terms": "auto"}


def describer(named: str | None = None, *, things: Things = "pictures", **options: Any) -> Describer:
    """The describer of a list of names; each part takes the options that it knows.

    Parameters
    ----------
    named : str or None
        Names with commas between: terms, colour, textons, hog, onnx:FILE for pictures; mfcc, sai for sounds; words for
        documents. None: `USUAL`.
    things : {"pictures", "sounds", "documents"}
        What is to be described.
    **options
        Parameters of the parts (size, crop, seed, n_terms, weighting, normalise, output ...), and `balance` where there
        are several. The number of terms is "auto" unless it is given. With `n_components`, the width of the rows
        that kernel PCA makes of all that, come `n_landmarks` and, for several, "mass" as the `balance`.

    Raises
    ------
    InputError
        An unknown name, one that comes twice, or an option that none of the parts has.

    Examples
    --------
    >>> describer("colour,hog", size=128).name
    'colour,hog'
    >>> describer("colour,hog", n_components=256).name
    'components of colour,hog'
    >>> describer("color")
    Traceback (most recent call last):
    ...
    wsabie.base.errors.InputError: there is no description called 'color'; did you mean 'colour'?
    """
    named = named or USUAL[things]
    words = [word.strip() for word in named.split(",") if word.strip()]
    kinds = [_kind_of(word) for word in words]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise InputError(f"{named!r} names {kind.name} twice; name it once")
    if len(things_named := {kind.things for kind in kinds}) > 1:
        raise InputError(f"{named!r} names descriptions of {' and of '.join(sorted(things_named))}; name those of one")
    if not kinds:
        raise InputError(f"no description is named; choose from {', '.join(_NAMED)}")
    if len(kinds) < 2 and "balance" in options:
        raise InputError(f"balance weighs descriptions against each other, and {named!r} is one; leave it out")
    mapped = _map_of(options)
    balance = options.pop("balance", "length" if mapped is None else "mass")  # a kernel of histograms compares mass
    known = [set(inspect.signature(kind).parameters) for kind in kinds]
    for option in options:
        if not any(option in names for names in known):
            raise InputError(f"{option.removeprefix('n_')} is no option of {named}; leave it out")
    given = {**_DEFAULTS, **options}
    parts = [
        _made(kind, word, {n: v for n, v in given.items() if n in names})
        for kind, word, names in zip(kinds, words, known, strict=True)
    ]
    found = parts[0] if len(parts) == 1 else Concatenation(parts, balance)
    return found if mapped is None else Components(found, mapped)


def _map_of(options: dict[str, Any]) -> KernelPca | None:
    """The map that the options ask for, which are taken out."""
    if "n_components" not in options:
        if "n_landmarks" in options:
            raise InputError("landmarks are those of kernel components; give components too, or leave landmarks out")
        return None
    own = {name: options.pop(name) for name in ("n_components", "n_landmarks") if name in options}
    return KernelPca(**own, **{name: options[name] for name in ("seed",) if name in options})


def _kind_of(word: str) -> type[Describer]:
    name = word.partition(":")[0]
    if name not in _NAMED:
        near = closest(name, tuple(_NAMED), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(_NAMED)}"
        raise InputError(f"there is no description called {name!r}; {hint}")
    if (":" in word) != (_NAMED[name] is OnnxEncoder):
        raise InputError(f"{word!r} is no description; write onnx:FILE for a network, and the name alone for others")
    return _NAMED[name]


def _made(kind: type[Describer], word: str, options: Mapping[str, Any]) -> Describer:
    file = {"model": word.partition(":")[2]} if kind is OnnxEncoder else {}
    return kind(**{**file, **options})


def describer_from_parts(parts: Parts) -> Describer:
    """The describer that `to_parts` of any of them described.

    Raises
    ------
    ModelFolderError
        Of an unknown kind, or of another version.
    """
    if parts.kind not in _KINDS:
        raise ModelFolderError(
            f"this is a {parts.kind!r} and nothing that describes pictures, sounds or documents; give the folder of a "
            "dictionary"
        )
    return _KINDS[parts.kind].from_parts(parts)


def load_describer(path: str | Path) -> Describer:
    """Open a saved describer of any kind.

    Raises
    ------
    ModelFolderError
        Missing, damaged, something else, or of another version.
    """
    return describer_from_parts(load_folder(path))
