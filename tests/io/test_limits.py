"""Small files that ask for much memory or time end in one sentence, or in rows."""

import gzip
import json
import os
import re
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.io.hostile import ROWS, write_hostile

from wsabie.core.errors import InputError
from wsabie.core.folder_tree import walk_folder
from wsabie.core.input_files import open_input
from wsabie.core.input_limits import VARIABLE
from wsabie.embedding import tables
from wsabie.io.data_sources import open_row_stream, open_source, open_unlabelled_rows
from wsabie.io.format_detection import detect_format
from wsabie.io.formats import region_items
from wsabie.io.formats.id_labels import read_ids
from wsabie.io.formats.parquet_tables import open_parquet_table
from wsabie.io.formats.svmlight import SvmlightStream
from wsabie.io.parsers.text_tables import parse_json_cells
from wsabie.io.records import FeatureTable, Item
from wsabie.io.regions import Box, Region, RegionCrop
from wsabie.io.tags.image_tags import read_image_tags
from wsabie.io.tags.tag_writer import write_embedded, write_sidecar
from wsabie.io.tags.xmp import make_tag_properties, read_xmp_packet, replace_tags
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.label_names import normalise_label_name

_OPEN_ALL = """
import sys
from pathlib import Path
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
for name in sys.argv[1:]:
    try:
        said = f"{len(open_source(Path(name)))} rows"
    except InputError as error:
        said = str(error)
    print(Path(name).name, said.replace("\\n", " "))
lines = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024)
"""


def test_hostile_small_files_take_little_memory(tmp_path: Path) -> None:
    files = write_hostile(tmp_path)
    run = subprocess.run(
        [sys.executable, "-c", _OPEN_ALL, *map(str, files.values())], capture_output=True, text=True, check=True
    )
    *lines, megabytes = run.stdout.splitlines()
    for kind, line in zip(files, lines, strict=True):
        limit = kind.partition(" ")[0]
        assert (re.search(f'{VARIABLE}="{limit}=[0-9]+"$', line)) or (limit == "ok" and line.endswith(" 1 rows")), line
    assert int(megabytes) < 1000


def test_environment_variable_changes_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.txt"
    file.write_text(ROWS + "1 3000000:1\n")
    with pytest.raises(InputError, match="3,000,001 features for at most 41 values"):
        SvmlightStream(file, Rejects()).read_all()
    assert SvmlightStream(file, Rejects()).read_all(10).X.shape == (41, 3_000_001)  # the model's width counts
    monkeypatch.setenv(VARIABLE, "empty_columns=1e7")
    assert SvmlightStream(file, Rejects()).read_all().X.shape == (41, 3_000_001)


def test_hashed_features_and_many_labels_are_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = tmp_path / "hashed.txt"
    numbers = rng.integers(0, 1 << 21, (10_000, 11))
    rows = (" ".join(f"{j}:1" for j in sorted(set(row))) for row in numbers.tolist())
    file.write_text(f"10000 {1 << 21} 300000\n" + "".join(f"{i * 29} {row}\n" for i, row in enumerate(rows)))
    rows_read = SvmlightStream(file, Rejects()).read_all()
    assert (rows_read.X.shape, len(rows_read.label_names)) == ((10_000, 1 << 21), 300_000)


def test_unlabelled_rows_need_no_label_names(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("2 10 2000000000\n1 1:1\n0 0:1\n")
    assert sum(map(len, open_unlabelled_rows(file, Rejects(), 10) or ())) == 2
    with pytest.raises(InputError, match="empty_labels"):
        open_row_stream(file, Rejects())


def test_deep_parquet_footer_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.parquet"
    footer = b"\x1c" * 1000
    file.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(InputError, match=r"deep\.parquet"):
        open_source(file)


def test_ordinary_gzip_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt.gz"
    file.write_bytes(gzip.compress((ROWS * 1000).encode()))
    assert len(open_source(file)) == 40_000


def test_dictionary_texts_share_one_object(tmp_path: Path) -> None:
    kinds = ["cat", "dog", None, "cat"]
    columns = {
        "id": pa.array(kinds).dictionary_encode().cast(pa.string()),
        "labels": pa.array([["cat", "dog"], [], None, ["cat"]]),
        "image": pa.array([*({"bytes": content, "path": "x"} for content in (b"1", None, b"1")), None]),
    }
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), file, row_group_size=3)
    batches = list(open_parquet_table(file).iterate_batches([*columns], 2))
    for name, array in columns.items():
        assert [cell for batch in batches for cell in batch.get_column(name)] == array.to_pylist()
    first = batches[0].get_column("labels"), batches[0].get_column("id")
    assert [len(batch.data) for batch in batches] == [2, 1, 1]
    assert first[0][0] == ["cat", "dog"]


def _packet(*paths: str) -> bytes:
    return (
        '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description '
        'xmlns:lr="http://ns.adobe.com/lightroom/1.0/"><lr:hierarchicalSubject><r:Bag>'
        + "".join(f"<r:li>{path}</r:li>" for path in paths)
        + "</r:Bag></lr:hierarchicalSubject></r:Description></r:RDF>"
    ).encode()


def test_keyword_path_depth_is_limited(tmp_path: Path) -> None:
    assert len(next(iter(read_xmp_packet(_packet("|".join(map(str, range(100))))).tags or {}))) == 100
    with pytest.raises(RowError) as refused:
        read_xmp_packet(_packet("|".join(map(str, range(4000)))))
    assert "4,000 levels, and at most 100 are allowed" in refused.value.detail
    photo = tmp_path / "a.jpg"
    Image.new("RGB", (16, 16)).save(photo)
    photo.with_name("a.jpg.xmp").write_bytes(_packet("a" + "|a" * 4000))
    assert [problem.reason for problem in read_image_tags(photo).problems] == ["unreadable sidecar"]


def test_xmp_blanks_and_namespaces_take_linear_time(tmp_path: Path) -> None:
    spaces = " xmlns:dc='http://purl.org/dc/elements/1.1/' " + " ".join(f"xmlns:z{i}='u{i}'" for i in range(10_000))
    head = f"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'{spaces}>"
    blank = f"<r:Description dc:subject='a'{' ' * 500_000}/>"
    packet = (head + blank + "<r:Description dc:subject='a'/>" * 10_000 + "</r:RDF>").encode()
    written = replace_tags(packet, make_tag_properties(["sea"]))
    assert written is not None
    assert list(read_xmp_packet(written).tags or {}) == [("sea",)]
    photo = tmp_path / "a.jpg"
    Image.new("RGB", (16, 16)).save(photo, xmp=_packet() + b" " * 60_000)
    with pytest.raises(InputError, match="oversized XMP packet"):
        write_embedded(photo, [f"tag {number}" for number in range(1000)])


def test_box_of_a_region_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n, requests, box_of = 300, [], region_items._get_box
    monkeypatch.setattr(region_items, "_get_box", lambda item: requests.append(item) or box_of(item))
    boxes = [Box(number, number, 2 * n - number, 2 * n - number) for number in range(n)]
    items = [Item(f"a#{i}", RegionCrop(b"", Region(box)), (f"{i}",), "a") for i, box in enumerate(boxes)]
    couples = list(region_items.find_region_pairs(items, share=1))
    assert [(couple.container.id, couple.part.id) for couple in couples] == [
        (f"a#{i}", f"a#{i + 1}") for i in range(n - 1)
    ]
    assert len(requests) == n


def test_json_depth_is_limited() -> None:
    assert parse_json_cells(('{"a": ' + "[" * 99 + "]" * 99 + "}").encode()) == {"a": json.loads("[" * 99 + "]" * 99)}
    for deep in ("[" * 900 + "]" * 900, "[" * 1_000_000 + "]" * 1_000_000):
        with pytest.raises(RowError) as bad:
            parse_json_cells(f'{{"a": {deep}}}'.encode())
        assert bad.value.reason == "JSON that nests too deeply"
    assert parse_json_cells(json.dumps({"a": '[{\\"' * 500}).encode()) == {"a": '[{\\"' * 500}  # brackets of a text
    for broken in (b'{"a": "' + b'\\"[' * 500_000, b'{"a": ' + b"9" * 1_000_000 + b"}"):
        with pytest.raises(RowError):
            parse_json_cells(broken)


def test_stacked_accents_are_refused() -> None:
    assert normalise_label_name("a" + "\u0316" * 100) == unicodedata.normalize("NFC", "a" + "\u0316" * 100)
    with pytest.raises(InputError, match="more than 100 marks on one letter"):
        normalise_label_name("a" + "\u0316\u0301" * 500_000)


def test_many_concepts_of_one_name_take_linear_time() -> None:
    graph, kinds, n = KnowledgeGraph(), Hierarchy(), 40_000
    for number in range(n):
        graph.add(f"n{number}", ["toad"])
        graph.add("n0", [f"toad {number}"])
        kinds.add_names(f"n{number}", ["toad"])
    graph.rank_senses("toad", [f"n{number}" for number in range(n - 1, -1, -1)])
    assert graph.find_senses("toad")[:2] == [f"n{n - 1}", f"n{n - 2}"]
    assert len(kinds.find_senses("toad")) == n


def test_quoted_arff_takes_linear_time(tmp_path: Path) -> None:
    file = tmp_path / "a.arff"
    file.write_text(f"@relation x\n@attribute a numeric\n@attribute l {{0,1}}\n@data\n'1',{'1,' * 200_000}1\n1,1\n")
    file.with_suffix(".xml").write_text('<labels><label name="l"/></labels>')
    rejects = Rejects()
    assert len(open_source(file, rejects=rejects)) == 1
    assert rejects.counts == {"wrong number of values": 1}


def test_format_detection_takes_linear_time(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ImageID," + "LabelName," * 6000 + "\n")
    with pytest.raises(InputError):
        detect_format(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_are_read_only_by_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is a pipe or a device"):
        open_input(pipe)
    with pytest.raises(InputError, match="is a pipe or a device"):
        open_input("/dev/zero", pipe=True)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a\nb\n"))
    writer.start()
    assert read_ids(pipe, rejects=Rejects()) == ["a", "b"]
    writer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_beside_the_data_are_never_opened(tmp_path: Path) -> None:
    photo, rows = tmp_path / "p" / "a.jpg", tmp_path / "rows.txt"
    photo.parent.mkdir()
    write_sidecar(photo, ["sea"])
    Image.new("RGB", (16, 16)).save(photo)
    rows.write_text(ROWS)
    for name in ("labels.txt", "table/a.parquet", "p/b.jpg.xmp", "p/b.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        os.mkfifo(tmp_path / name)
    assert isinstance(open_source(rows), FeatureTable)
    with pytest.raises(InputError, match=r"a\.parquet is a pipe or a device"):
        open_source(tmp_path / "table")
    rejects = Rejects()
    assert len(open_source(tmp_path / "p", labels_from="xmp", rejects=rejects)) == 1
    assert rejects.listed == [("b.jpg", "not a regular file", "")]


def test_folders_may_be_deeper_than_the_stack(tmp_path: Path) -> None:
    start, n = Path.cwd(), 1100
    os.chdir(tmp_path)
    try:
        for _ in range(n):
            Path("d").mkdir()
            os.chdir("d")
        Path("a.txt").write_text("deep")
        *_, (place, folders, files) = walk_folder(tmp_path, lambda error: None)
        assert (place.count("/d"), folders, files) == (n, [], ["a.txt"])
    finally:
        Path("a.txt").unlink(missing_ok=True)
        while Path.cwd() != tmp_path:  # pytest cannot remove so deep a folder
            os.chdir("..")
            Path("d").rmdir()
        os.chdir(start)


def test_tables_larger_than_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "get_available_memory", lambda: 1 << 20)
    with pytest.raises(InputError, match=r"20,000 points of 10 dimensions need 0\.0 GB"):
        tables.allocate_zeros(20_000, 10)
