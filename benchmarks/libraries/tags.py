"""Tags in pictures: read from XMP and IPTC, and written without a change of anything else."""

import io
import shutil
from pathlib import Path

import numpy as np
from PIL import Image
from pyarrow import parquet

from benchmarks.libraries.measure import Work, compare
from wsabie.io.tags.embedded_metadata import iterate_chunks
from wsabie.io.tags.image_tags import read_image_tags, read_tag_paths
from wsabie.io.tags.tag_writer import write_embedded
from wsabie.samples import get_sample_path

PICTURES = 200
PACKET = (
    """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="another program">
 <!-- a note of its maker -->
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:own="http://example.org/own/" own:grade='7'
    xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:lr="http://ns.adobe.com/lightroom/1.0/">
   <dc:subject><rdf:Bag><rdf:li>sea</rdf:li><rdf:li>dog</rdf:li></rdf:Bag></dc:subject>
   <lr:hierarchicalSubject><rdf:Bag><rdf:li>animal|dog</rdf:li></rdf:Bag></lr:hierarchicalSubject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""
    + (" " * 99 + "\n") * 20
    + '<?xpacket end="w"?>'
)


def run(folder: Path) -> None:
    """Write tagged JPEG files made of the bundled drawings, read them, and change their tags."""
    pictures = _write_pictures(folder)
    size = sum(picture.stat().st_size for picture in pictures) / len(pictures) / 1e3
    title = f"{len(pictures)} JPEG files of {size:.0f} KB with XMP of another program: "
    _compare_reading(title, pictures)
    _compare_writing(title, pictures, folder)


def _write_pictures(folder: Path) -> list[Path]:
    images = parquet.read_table(get_sample_path("emoji"), columns=["image"])["image"][:PICTURES].to_pylist()
    paths = []
    for number, image in enumerate(images):
        picture = Image.open(io.BytesIO(image)).convert("RGB").resize((512, 512))
        paths.append(folder / f"{number}.jpg")
        picture.save(paths[-1], quality=90, xmp=PACKET.encode(), exif=_make_exif())
    return paths


def _make_exif() -> bytes:
    exif = Image.Exif()
    exif[0x010F], exif[0x0112] = "a maker", 1
    return exif.tobytes()


def _compare_reading(title: str, pictures: list[Path]) -> None:
    def ours() -> Work:
        return lambda: [{path[-1] for path in read_tag_paths(picture)} for picture in pictures]

    def everything() -> Work:
        return lambda: [set(read_image_tags(picture).names) for picture in pictures]

    def pillow() -> Work:
        import defusedxml  # noqa: F401 - getxmp needs it

        def work() -> list[set[str]]:
            results = []
            for picture in pictures:
                with Image.open(picture) as image:
                    subject = image.getxmp()["xmpmeta"]["RDF"]["Description"]["subject"]
                    results.append(set(subject["Bag"]["li"]))
            return results

        return work

    def pyexiv2() -> Work:
        import pyexiv2

        def work() -> list[set[str]]:
            results = []
            for picture in pictures:
                with pyexiv2.Image(str(picture)) as image:
                    results.append(set(image.read_xmp()["Xmp.dc.subject"]))
            return results

        return work

    def exiftool() -> Work:
        from exiftool import ExifToolHelper

        if shutil.which("exiftool") is None:
            raise ImportError(name="exiftool")
        names = [str(picture) for picture in pictures]

        def work() -> list[set[str]]:
            with ExifToolHelper() as helper:
                return [set(metadata["XMP:Subject"]) for metadata in helper.get_tags(names, "XMP:Subject")]

        return work

    entrants = {
        "ours, tags alone": ours,
        "ours, with date and size": everything,
        "pillow getxmp": pillow,
        "pyexiv2": pyexiv2,
        "PyExifTool": exiftool,
    }
    compare(title + "read", entrants, lambda names: f"right: {names == [{'sea', 'dog'}] * len(pictures)}")


def _compare_writing(title: str, pictures: list[Path], folder: Path) -> None:
    drafts = {name: folder / name for name in ("ours", "pyexiv2", "exiftool")}
    numbers = np.random.default_rng(0)

    def draft(name: str) -> list[Path]:
        shutil.rmtree(drafts[name], ignore_errors=True)
        drafts[name].mkdir()
        return [Path(shutil.copy(picture, drafts[name])) for picture in pictures]

    def choose_tags() -> list[str]:
        return ["sea", "dog", f"tag {numbers.integers(10**6)}"]

    def ours() -> Work:
        copies = draft("ours")

        def work() -> Path:
            for picture in copies:
                write_embedded(picture, choose_tags())
            return copies[0]

        return work

    def pyexiv2() -> Work:
        import pyexiv2 as library

        copies = draft("pyexiv2")

        def work() -> Path:
            for picture in copies:
                with library.Image(str(picture)) as image:
                    image.modify_xmp({"Xmp.dc.subject": choose_tags()})
            return copies[0]

        return work

    def exiftool() -> Work:
        from exiftool import ExifToolHelper

        if shutil.which("exiftool") is None:
            raise ImportError(name="exiftool")
        copies = [str(copy) for copy in draft("exiftool")]

        def work() -> Path:
            with ExifToolHelper() as helper:
                for picture in copies:
                    helper.set_tags([picture], {"XMP:Subject": choose_tags()}, ["-overwrite_original"])
            return Path(copies[0])

        return work

    entrants = {"ours": ours, "pyexiv2": pyexiv2, "PyExifTool": exiftool}
    compare(title + "write", entrants, lambda path: _describe_changes(pictures[0], path))  # type: ignore[arg-type]


def _describe_changes(old: Path, new: Path) -> str:
    """Say what else than the tags differs between two pictures."""
    old_bytes, new_bytes = old.read_bytes(), new.read_bytes()
    segments = [[content for kind, content in _list_segments(path) if kind != "XMP"] for path in (old, new)]
    packet = new_bytes[new_bytes.index(b"<x:xmpmeta") : new_bytes.index(b"</x:xmpmeta>")]
    other_content = {"note": b"a note of its maker", "author": b'"another program"', "quotes": b"own:grade='7'"}
    lost = [name for name, text in other_content.items() if text in old_bytes and text not in packet]
    return f"other segments same: {segments[0] == segments[1]}; lost in the packet: {', '.join(lost) or 'nothing'}"


def _list_segments(path: Path) -> list[tuple[str, bytes]]:
    content = path.read_bytes()
    pieces = list(iterate_chunks(io.BytesIO(content), "JPEG"))
    segments = [content[piece.begin : piece.end] for piece in pieces]
    kinds = ["XMP" if b"ns.adobe.com/xap" in segment else "" for segment in segments]
    return [*zip(kinds, segments, strict=True), ("", content[pieces[-1].end :])]
