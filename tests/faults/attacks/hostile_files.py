"""Small files that ask for much: pictures, data, keyword paths, networks; the same every time."""

import gzip
import io
import json
import os
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import TensorProto, helper
from PIL import Image

Make = Callable[[Path], None]


def _picture(folder: Path, name: str, mode: str, size: tuple[int, int], **settings: object) -> None:
    Image.new(mode, size).save(folder / name, **settings)


def float_tiffs(folder: Path, n: int = 8) -> None:
    """Pictures of 64 megapixels in floats, of some kilobytes each."""
    _picture(folder, "0.tif", "F", (8000, 8000), compression="tiff_deflate")
    _copies(folder, "0.tif", n)


def tall_webps(folder: Path) -> None:
    """Pictures of the largest WebP there is."""
    _picture(folder, "0.webp", "RGBA", (12000, 12000), quality=1, method=0)
    _copies(folder, "0.webp", 6)


def flat_avif(folder: Path) -> None:
    """A picture of one kilobyte and 150 megapixels."""
    _picture(folder, "0.avif", "RGB", (12000, 12000), quality=1, speed=10)


def deep_pngs(folder: Path) -> None:
    """Pictures of 16 bits a band, RGBA: 64 megapixels each."""
    side = 8000
    line = zlib.compress(bytes((1 + 8 * side) * side), 9)
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 16, 6, 0, 0, 0)), (b"IDAT", line), (b"IEND", b""))
    content = b"".join(struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks)
    (folder / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    _copies(folder, "0.png", 4)


def grey_png(folder: Path) -> None:
    """A grey picture of 16 bits and 170 megapixels."""
    Image.fromarray(np.zeros((13000, 13000), np.uint16)).save(folder / "0.png", compress_level=9)


def long_gif(folder: Path) -> None:
    """A film of large frames."""
    frames = [Image.new("P", (6000, 6000), number) for number in range(12)]
    frames[0].save(folder / "0.gif", save_all=True, append_images=frames[1:])


def wide_and_thin(folder: Path) -> None:
    """Pictures of every extreme: 1 x 1 to 20,000 x 20,000 and thin ones."""
    for number, size in enumerate(
        ((1, 1), (1, 65000), (65000, 1), (2, 20000), (20000, 20000), (3, 3), (1, 2), (255, 257))
    ):
        _picture(folder, f"{number}.png", "1", size)


def _copies(folder: Path, name: str, n: int) -> None:
    content = (folder / name).read_bytes()
    for number in range(1, n):
        (folder / name.replace("0", str(number))).write_bytes(content + bytes(number))


def lying_header(folder: Path) -> None:
    """A header that promises two billion features and labels."""
    (folder / "data.txt").write_text("2 2000000000 2000000000\n0 0:1\n1 1:1\n")


def many_rows_header(folder: Path) -> None:
    """A header that promises more rows than there are bytes in the world."""
    (folder / "data.txt").write_text("999999999999999999 10 10\n0 0:1\n1 1:1\n")


def high_column(folder: Path) -> None:
    """One column number of two billion."""
    (folder / "data.svm").write_text("0 0:1\n1 2000000000:1\n0 3:1\n1 4:1\n" * 5)


def high_label(folder: Path) -> None:
    """One label number of two billion."""
    (folder / "data.txt").write_text("4 10 2000000000\n0 0:1\n1999999999 1:1\n0 3:1\n1 4:1\n")


def gzip_bomb(folder: Path) -> None:
    """Two gigabytes of svmlight lines in two megabytes."""
    _gzip(folder / "data.svm.gz", b"0 1:1\n" * 170_000, 2000)


def gzip_zeros(folder: Path) -> None:
    """One line of two gigabytes."""
    _gzip(folder / "data.txt.gz", bytes(1 << 20), 2000)


def gzip_json(folder: Path) -> None:
    """Two gigabytes of JSON lines."""
    _gzip(folder / "data.jsonl.gz", b'{"text": "a toad", "labels": ["x"]}\n' * 29_000, 2000)


def gzip_long_json(folder: Path) -> None:
    """A text of one gigabyte in one JSON line."""
    parts = (b'{"labels": ["x"], "text": "', b"a " * 500_000, b'"}\n')
    with gzip.open(folder / "data.jsonl.gz", "wb", 1) as out:
        out.write(parts[0])
        for _ in range(1000):
            out.write(parts[1])
        out.write(parts[2])


def gzip_fasttext(folder: Path) -> None:
    """Two gigabytes of fastText lines."""
    _gzip(folder / "data.txt.gz", b"__label__a toad frog\n" * 50_000, 2000)


def _gzip(file: Path, part: bytes, n: int) -> None:
    """Write a part n times, as members that are compressed once."""
    member = gzip.compress(part, 9)
    file.write_bytes(member * n)


def nested_json(folder: Path) -> None:
    """Lists in lists, 100,000 deep."""
    deep = "[" * 100_000 + "]" * 100_000
    (folder / "data.jsonl").write_text(f'{{"text": "a", "labels": {deep}}}\n{{"text": "b", "labels": ["x"]}}\n')


def deep_coco(folder: Path) -> None:
    """The same in one JSON document."""
    (folder / "data.json").write_text('{"images": ' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}")


def parquet_dictionary(folder: Path) -> None:
    """A column whose one long value stands a hundred thousand times, as a page of numbers into a dictionary."""
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), pa.array(["a " * 50_000]))
    table = pa.table({"text": long, "labels": pa.array([["x"]] * 100_000)})
    pq.write_table(table, folder / "data.parquet", compression="zstd")


def parquet_lists(folder: Path) -> None:
    """Rows of one number, a hundred million times, in a few kilobytes."""
    values = pa.array(np.zeros(20_000_000, np.float32))
    starts = pa.array(np.arange(0, 20_000_001, 200_000, dtype=np.int32))
    table = pa.table({"features": pa.ListArray.from_arrays(starts, values), "labels": pa.array([["x"]] * 100)})
    pq.write_table(table, folder / "data.parquet", compression="zstd")


def keyword_paths(folder: Path) -> None:
    """A sidecar with a keyword path of 4,000 names, and one whose packet nests as deep."""
    Image.new("RGB", (20, 20)).save(folder / "0.jpg")
    Image.new("RGB", (20, 21)).save(folder / "1.jpg")
    head = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:lr="http://ns.adobe.com/lightroom/1.0/"><lr:hierarchicalSubject><rdf:Bag><rdf:li>'
    )
    tail = "</rdf:li></rdf:Bag></lr:hierarchicalSubject></rdf:Description></rdf:RDF></x:xmpmeta>"
    (folder / "0.xmp").write_text(head + "|".join(f"n{number}" for number in range(4000)) + tail)
    (folder / "1.xmp").write_text(head + "<rdf:Bag><rdf:li>" * 4000 + "x" + "</rdf:li></rdf:Bag>" * 4000 + tail)


def _network(folder: Path, nodes: list[onnx.NodeProto], initializers: list[onnx.TensorProto] | None = None) -> None:
    pictures = helper.make_tensor_value_info("pictures", TensorProto.FLOAT, [1, 3, 32, 32])
    answer = helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, None])
    graph = helper.make_graph(nodes, "g", [pictures], [answer], initializers or [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    photos = folder / "photos"
    photos.mkdir()
    for number in range(4):
        Image.new("RGB", (40, 40), (number * 60, 0, 0)).save(photos / f"{number}.png")
    lines = (json.dumps({"file_name": f"{number}.png", "labels": [f"l{number % 2}"]}) for number in range(4))
    (photos / "metadata.jsonl").write_text("\n".join(lines))


def endless_network(folder: Path) -> None:
    """A loop of 2^62 steps."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Add", ["x", "x"], ["y"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        ],
    )
    n = helper.make_tensor("n", TensorProto.INT64, [], [2**62])
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    nodes = [
        helper.make_node("Flatten", ["pictures"], ["flat"]),
        helper.make_node("Loop", ["n", "yes", "flat"], ["out"], body=body),
    ]
    _network(folder, nodes, [n, yes])


def large_network(folder: Path) -> None:
    """A network of some bytes that makes 9.5 GB of zeros."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [1, 2_400_000_000])
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["out"])]
    _network(folder, nodes, [shape])


def tiling_network(folder: Path) -> None:
    """A network that repeats its picture a million times."""
    times = helper.make_tensor("times", TensorProto.INT64, [2], [1, 1_000_000])
    nodes = [helper.make_node("Flatten", ["pictures"], ["flat"]), helper.make_node("Tile", ["flat", "times"], ["out"])]
    _network(folder, nodes, [times])


def pipes(folder: Path) -> None:
    """Pipes without a writer, by the names of every format."""
    for name in (
        "a.jpg",
        "metadata.csv",
        "metadata.jsonl",
        "b.xmp",
        "c.wav",
        "d.txt",
        "data.jsonl",
        "data.parquet",
        "data.txt",
    ):
        os.mkfifo(folder / name)
    Image.new("RGB", (20, 20)).save(folder / "b.jpg")


def self_links(folder: Path) -> None:
    """Pictures and folders that are links to themselves, and to nothing."""
    for name in ("a.jpg", "metadata.jsonl", "b.xmp", "folder"):
        (folder / name).symlink_to(name)
    (folder / "c.jpg").symlink_to("missing.jpg")
    (folder / "up").symlink_to("..")
    Image.new("RGB", (20, 20)).save(folder / "b.jpg")


def far_times(folder: Path) -> None:
    """Pictures of the year 2500, of 1650, and of now."""
    for number, moment in enumerate((16_725_225_600, -10_098_000_000, int(time.time()))):
        Image.new("RGB", (20, 20 + number)).save(folder / f"{number}.jpg")
        os.utime(folder / f"{number}.jpg", (moment, moment))


def odd_names(folder: Path) -> None:
    """Names of 255 bytes, with line ends, with signs of URLs, and with bytes that are not UTF-8."""
    picture = io.BytesIO()
    Image.new("RGB", (20, 20)).save(picture, "JPEG")
    names = (
        "x" * 251 + ".jpg",
        "a\nb\r.jpg",
        "who? #1 %41&.jpg",
        "'\";.jpg",
        "\udcff\udcfe.jpg",
        "-rf.jpg",
        " .jpg",
        "\x1b[31m.jpg",
    )
    for number, name in enumerate(names):
        (folder / name).write_bytes(picture.getvalue() + bytes(number))
    (folder / "\udcff").mkdir()
    (folder / "\udcff" / "a.jpg").write_bytes(picture.getvalue() + b"x")
