"""Folders of pictures."""

import csv
import json
import os
import shutil
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from wsabie.core.errors import InputError
from wsabie.io.formats.media_folder import read_file, read_folder, read_metadata
from wsabie.io.image_inspection import FORMATS
from wsabie.io.modalities import PICTURES
from wsabie.io.raw_photos import RAW_ENDINGS
from wsabie.io.tags.image_tags import read_keywords
from wsabie.storage.rejects import Rejects, RowError


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "collection"
    inner.mkdir()
    return inner


def list_items(source):
    return {p.id: p.labels for p in source}


def test_every_level_of_folders_is_a_label(folder, picture):
    picture(folder / "animal" / "dog" / "1.JPG")
    picture(folder / "animal" / "animal" / "2.png")
    picture(folder / "plant" / "3.webp")
    source = read_folder(folder, rejects=Rejects())
    assert list_items(source) == {
        "animal/animal/2.png": ("animal",),
        "animal/dog/1.JPG": ("animal", "dog"),
        "plant/3.webp": ("plant",),
    }
    assert len(source) == 3
    assert source.path == folder
    assert [p.content for p in source] == [folder / p.id for p in source]


def test_synset_folders_are_named_by_words_txt(folder, picture):
    for synset in ("n02012849", "n03126707", "n01440764", "n99999999"):
        picture(folder / synset / "1.png")
    assert next(p.labels for p in read_folder(folder, rejects=Rejects())) == ("n01440764",)
    (folder / "words.txt").write_text("n02012849\tcrane\nn03126707\tcrane\nn01440764\ttench, Tinca tinca\n")
    assert [p.labels for p in read_folder(folder, rejects=Rejects())] == [
        ("tench, Tinca tinca",),
        ("crane (n02012849)",),
        ("crane (n03126707)",),
        ("n99999999",),
    ]


def test_hidden_and_other_files_are_ignored_and_loose_pictures_listed(folder, picture):
    picture(folder / "dog" / "1.png")
    picture(folder / ".thumbs" / "1.png")
    picture(folder / "dog" / ".2.png")
    picture(folder / "loose.png")
    (folder / "README.txt").write_text("about")
    rejects = Rejects()
    assert list_items(read_folder(folder, rejects=rejects)) == {"dog/1.png": ("dog",)}
    assert rejects.counts == {"picture without labels": 1}
    assert rejects.listed[0][0] == "loose.png"


FOREIGN = ("Thumbs.db", "desktop.ini", ".DS_Store", "about.txt", "1.json", "1.xmp", "1.mp4", "._1.cr2", "notes")


def test_unsupported_picture_formats_are_listed(folder, picture):
    picture(folder / "dog" / "1.jpg")
    for name in (*FOREIGN, "1.JXL", "2.psd"):
        (folder / "dog" / name).write_bytes(b"content")
    rejects = Rejects()
    assert list_items(read_folder(folder, rejects=rejects)) == {"dog/1.jpg": ("dog",)}
    listed_files = {(where, reason, advice) for where, reason, advice in rejects.listed}
    problem = ("unsupported picture format", "convert it to JPEG or PNG")
    assert listed_files == {("dog/1.JXL", *problem), ("dog/2.psd", *problem)}
    with pytest.raises(InputError, match=r"unsupported picture format \(convert it to JPEG or PNG\)"):
        read_folder(folder, rejects=Rejects(strict=True))


def test_folder_of_unreadable_pictures_is_refused(folder, picture):
    for name in ("1.jxl", "2.psd"):
        (folder / name).write_bytes(b"content")
    with pytest.raises(InputError, match=r"no pictures that can be read, but 2 in formats .*; convert them to JPEG"):
        read_folder(folder, rejects=Rejects())
    picture(folder / "3.png")
    with pytest.raises(InputError, match=r"the pictures of .* have no labels"):
        read_folder(folder, rejects=Rejects())


OTHERS = {".mpo", ".jpg_large", ".heic", ".heif", ".hif", *RAW_ENDINGS}  # JPEG of phones, and what wsabie[photos] adds


def test_every_readable_format_has_its_endings():
    readable = {ending for ending, name in Image.registered_extensions().items() if name in FORMATS}
    assert readable - {".apng", ".avifs", ".pfm"} == set(PICTURES.endings) - OTHERS
    assert not readable & set(PICTURES.unread_endings)


def test_links_lead_only_inside_and_pipes_are_not_opened(folder, picture):
    inside = picture(folder / "dog" / "1.png")
    picture(folder / "elk" / "1.png")
    outside = picture(folder.parent / "secret" / "2.png")
    (folder / "dog" / "in.png").symlink_to(inside)
    (folder / "dog" / "out.png").symlink_to(outside)
    (folder / "dog" / "broken.png").symlink_to(folder / "gone.png")
    (folder / "dog" / "loop.png").symlink_to("pool.png")
    (folder / "dog" / "pool.png").symlink_to("loop.png")
    (folder / "cat").symlink_to(outside.parent)
    os.mkfifo(folder / "dog" / "pipe.png")
    rejects = Rejects()
    labels_by_file = list_items(read_folder(folder, rejects=rejects))
    assert labels_by_file == {"dog/1.png": ("dog",), "dog/in.png": ("dog",), "elk/1.png": ("elk",)}
    assert sorted(rejects.listed) == [
        ("cat", "link to a folder, not followed", ""),
        ("dog/broken.png", "link to a missing file", ""),
        ("dog/loop.png", "link that leads to itself", ""),
        ("dog/out.png", "link that leads out of the folder", ""),
        ("dog/pipe.png", "not a regular file", ""),
        ("dog/pool.png", "link that leads to itself", ""),
    ]


def test_file_names_that_are_not_utf8_are_listed(folder, picture):
    picture(folder / "dog" / "1.png")
    (folder / "dog" / "1.png").rename(folder / "dog" / os.fsdecode(b"\xff.png"))
    picture(folder / "dog" / "2.png")
    rejects = Rejects()
    assert list_items(read_folder(folder, rejects=rejects)) == {"dog/2.png": ("dog",)}
    assert rejects.listed[0][:2] == ("dog/\\udcff.png", "file name that is not UTF-8")


def test_single_top_folder_is_no_label(folder, picture):
    write_xmp(picture, folder / "images" / "1.webp", make_xmp("sea"))
    picture(folder / "images" / "2.png")
    assert list_items(read_folder(folder, rejects=Rejects())) == {"images/1.webp": ("sea",)}
    assert list_items(read_folder(folder, labels_from="folders", rejects=Rejects()))["images/2.png"] == ("images",)


def test_train_beside_test_is_refused_as_a_split(folder, picture):
    picture(folder / "train" / "dog" / "1.png")
    picture(folder / "test" / "dog" / "1.png")
    with pytest.raises(InputError, match="'test' and 'train', which look like a split"):
        read_folder(folder, rejects=Rejects())
    assert list_items(read_folder(folder, labels_from="folders", rejects=Rejects()))["train/dog/1.png"] == ("dog",)


def test_pictures_to_annotate_need_no_labels(folder, picture):
    picture(folder / "b.png")
    picture(folder / "sub" / "a.png")
    assert list_items(read_folder(folder, labels_from="none", rejects=Rejects())) == {"b.png": (), "sub/a.png": ()}


METADATA = [
    {"file_name": "a.png", "labels": ["sea", "old  town", "sea"], "group": 7, "time": "2020-01-02", "split": "train"},
    {"file_name": "sub/b.png", "labels": "sky; sea", "group": None, "split": "test"},
    {"file_name": "a.png", "labels": ["again"]},
    {"file_name": "gone.png", "labels": ["sea"]},
    {"file_name": "../outside.png", "labels": ["sea"]},
    {"file_name": "/etc/c.png", "labels": ["sea"]},
    {"file_name": "./c.png", "labels": []},
    {"labels": ["sea"]},
]
REASONS = {
    "labels without a picture": 1,
    "path that leads out of the folder": 2,
    "picture without labels": 2,
    "row without a file name": 1,
}


@pytest.fixture
def picture_folder(folder, picture):
    for name in ("a.png", "sub/b.png", "c.png", "unnamed.png", "../outside.png"):
        picture(folder / name)
    return folder


def write_csv(folder, rows):
    columns = ["file_name", "labels", "group", "time", "split"]
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        for row in rows:
            labels = row["labels"]
            writer.writerow(row | {"labels": labels if isinstance(labels, str) else "; ".join(labels)})


def write_jsonl(folder, rows):
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n", "utf-8")


@pytest.mark.parametrize("write", [write_csv, write_jsonl])
def test_csv_and_jsonl_metadata_agree(picture_folder, write):
    write(picture_folder, METADATA)
    rejects = Rejects()
    source = read_folder(picture_folder, rejects=rejects)
    assert list_items(source) == {"a.png": ("sea", "old town", "again"), "sub/b.png": ("sky", "sea")}
    assert [(p.group, p.time) for p in source] == [("7", "2020-01-02"), (None, None)]
    assert rejects.counts == REASONS
    assert list_items(read_folder(picture_folder, split="test", rejects=Rejects())) == {"sub/b.png": ("sky", "sea")}
    with pytest.raises(InputError, match="has the split 'val'"):
        read_folder(picture_folder, split="val", rejects=Rejects())


@pytest.mark.parametrize("write", [write_csv, write_jsonl])
def test_labels_of_repeated_rows_are_joined(picture_folder, write):
    blank = {"group": None, "time": None, "split": None}
    rows = [
        {"file_name": "a.png", "labels": "sea"} | blank | {"group": "g", "split": "train"},
        {"file_name": "c.png", "labels": "dog"} | blank | {"split": "test"},
        {"file_name": "./a.png", "labels": "sky"} | blank | {"time": "2020"},
        {"file_name": "a.png", "labels": "sea"} | blank,
        {"file_name": "a.png", "labels": ""} | blank,
        {"file_name": "a.png", "labels": "odd"} | blank | {"split": "test"},
        {"file_name": "gone.png", "labels": "sea"} | blank,
        {"file_name": "gone.png", "labels": "sky"} | blank,
    ]
    write(picture_folder, rows)
    rejects = Rejects()
    source = read_folder(picture_folder, rejects=rejects)
    assert [tuple(p)[:1] + tuple(p)[2:] for p in source] == [
        ("a.png", ("sea", "sky"), "g", "2020"),
        ("c.png", ("dog",), None, None),
    ]
    assert [why for _, *why in rejects.listed if why[1] != "no row in the metadata"] == [
        ["row at odds with another of its file", "split test and not train"],
        ["labels without a picture", "gone.png"],
    ]
    assert list_items(read_folder(picture_folder, split="test", rejects=Rejects())) == {"c.png": ("dog",)}


def test_metadata_rows_reach_no_outside_picture(picture_folder, picture):
    (picture_folder / "out.png").symlink_to(picture(picture_folder.parent / "secret" / "1.png"))
    (picture_folder / "out").symlink_to(picture_folder.parent / "secret")
    names = ["out.png", "out/1.png", "sub/../../secret/1.png", str(picture_folder.parent / "secret" / "1.png"), "a.png"]
    write_jsonl(picture_folder, [{"file_name": name, "labels": ["sea"]} for name in names])
    rejects = Rejects()
    assert list_items(read_folder(picture_folder, rejects=rejects)) == {"a.png": ("sea",)}
    assert rejects.counts["labels without a picture"] == 2
    assert rejects.counts["path that leads out of the folder"] == 2


@pytest.mark.parametrize(("name", "row"), [("metadata.csv", b"a.png,"), ("metadata.jsonl", b'{"file_name": "')])
@pytest.mark.parametrize("filler", [b"x", b'"x"'])
def test_endless_line_is_refused_in_little_memory(picture_folder, name, row, filler):
    (picture_folder / name).write_bytes(b"file_name,label\n" + row + filler * (40_000_000 // len(filler)))
    tracemalloc.start()
    with pytest.raises(InputError, match=rf"{name}:2 has a line of more than 4 MiB"):
        read_folder(picture_folder, rejects=Rejects())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_separator_is_chosen_for_the_whole_column(picture_folder):
    (picture_folder / "metadata.csv").write_text('file_name,tags\na.png,"Washington, D.C.;sea"\nc.png,"one, two"\n')
    assert list_items(read_folder(picture_folder, rejects=Rejects())) == {
        "a.png": ("Washington, D.C.", "sea"),
        "c.png": ("one, two",),
    }


def test_column_names_can_be_given(picture_folder):
    (picture_folder / "metadata.csv").write_text("Slide,Species\na.png,sea lion\n")
    with pytest.raises(InputError, match=r"no column 'file_name' \(it has 'Slide', 'Species'\)"):
        read_folder(picture_folder, rejects=Rejects())
    with pytest.raises(InputError, match="no column 'labels' or 'label'"):
        read_folder(picture_folder, image_column="Slide", rejects=Rejects())
    source = read_folder(picture_folder, image_column="Slide", label_column="Species", rejects=Rejects())
    assert list_items(source) == {"a.png": ("sea lion",)}
    (picture_folder / "metadata.csv").write_text("Photo,Label\na.png,sea lion\n")
    assert list_items(read_folder(picture_folder, rejects=Rejects())) == {"a.png": ("sea lion",)}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("metadata.csv", b"file_name,label,label\n", r"csv:1 names a column twice"),
        ("metadata.csv", b"file_name,label\na.png,\xff\n", r"csv:2 is not UTF-8 text; convert the file"),
        (
            "metadata.csv",
            b"file_name,label\n" + b"a.png,x\n" * 5000 + b'c.png,"\n\xff"\n' + b"a.png,x\n" * 5000,
            r"csv:5003 is not UTF-8 text",
        ),
        ("metadata.csv", b'file_name,label\na.png,"' + b"x" * 200_000 + b'"\n', r"csv:2 begins a row of malformed CSV"),
        (
            "metadata.jsonl",
            b'{"file_name": "a.png", "label": "x"}\n{"file_name": "c.png", "label": 3}\n',
            r"jsonl:2: column 'label' holds the number 3 but the text 'x' at .*jsonl:1; write all labels as texts",
        ),
        ("metadata.jsonl", b'{"file_name": "a.png", "label": ["x", 3]}\n', r"holds the number 3 but the text 'x'"),
        ("metadata.jsonl", b'{"file_name": "a.png", "label": {"a": 1}}\n', r"which is not a label"),
        ("metadata.jsonl", b'{"file_name": "a.png", "label": true}\n', r"holds True, which is not a label"),
    ],
)
def test_invalid_metadata_are_refused(picture_folder, name, text, sentence):
    (picture_folder / name).write_bytes(text)
    with pytest.raises(InputError, match=sentence):
        read_folder(picture_folder, rejects=Rejects())


def test_broken_metadata_rows_are_listed(picture_folder):
    lines = ['{"file_name": "a.png", "label": 3}', "{", "[]", '{"file_name": ["x"], "label": 1}']
    lines += ['{"file_name": "c.png", "labels": ["\\ud800"]}', '{"file_name": "\\ud800.png", "label": 4}']
    (picture_folder / "metadata.jsonl").write_text("\n".join(lines[:4] + lines[5:]))
    rejects = Rejects()
    assert list_items(read_folder(picture_folder, rejects=rejects)) == {"a.png": ("3",)}
    assert rejects.counts == {
        "malformed JSON": 1,
        "line that is not a JSON object": 1,
        "cell that is not a single value": 1,
        "text that is not valid": 1,
        "picture without labels": 3,
    }
    (picture_folder / "metadata.jsonl").write_text('{"file_name": "a.png", "labels": ["b"]}\n' + lines[4])
    rejects = Rejects()
    read_folder(picture_folder, rejects=rejects)
    assert rejects.counts == {"label that is not valid text": 1, "picture without labels": 2}
    (picture_folder / "metadata.csv").write_text("file_name,label\na.png,x,y\n")
    with pytest.raises(InputError, match=r"has both metadata\.csv and metadata\.jsonl"):
        read_folder(picture_folder, rejects=Rejects())
    (picture_folder / "metadata.jsonl").unlink()
    rejects = Rejects()
    with pytest.raises(InputError, match="no labelled pictures are left"):
        read_folder(picture_folder, rejects=rejects)
    assert rejects.counts["wrong number of cells"] == 1


def make_xmp(*keywords):
    items = "".join(f"<rdf:li>{k}</rdf:li>" for k in keywords)
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject><dc:title><rdf:Alt><rdf:li>no</rdf:li></rdf:Alt></dc:title>"
        '</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def write_xmp(picture, path, packet):
    if path.suffix == ".png":
        info = PngImagePlugin.PngInfo()
        info.add_itxt("XML:com.adobe.xmp", packet.decode())
        return picture(path, pnginfo=info)
    if path.suffix == ".tif":
        return picture(path, tiffinfo={700: packet})
    return picture(path, xmp=packet)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tif"])
def test_keywords_inside_pictures_are_labels(folder, picture, name):
    write_xmp(picture, folder / name, make_xmp("sea  lion", "k\u00f6ln", "sea  lion"))
    picture(folder / "bare.png")
    rejects = Rejects()
    assert list_items(read_folder(folder, rejects=rejects)) == {name: ("sea lion", "k\u00f6ln")}
    assert rejects.counts == {"picture without labels": 1}
    assert list_items(read_file(folder / name, rejects=Rejects())) == {name: ("sea lion", "k\u00f6ln")}
    assert list_items(read_file(folder / name, labels_from="none", rejects=Rejects())) == {name: ()}


def test_keywords_that_are_each_one_joined_text_are_reported(folder, picture, caplog):
    for name, keyword in (("a.jpg", "sea, dog"), ("b.jpg", "dog, sky")):
        write_xmp(picture, folder / name, make_xmp(keyword))
    assert list_items(read_folder(folder, rejects=Rejects())) == {"a.jpg": ("sea, dog",), "b.jpg": ("dog, sky",)}
    assert "a single text such as 'sea, dog', which stays one label" in caplog.text


@pytest.mark.parametrize(
    "packet",
    [
        b"<a",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        b"<a>" * 500,
        b"\xff\xfe",
        make_xmp("x").replace(b"dc:", b"d:"),
    ],
)
def test_unsafe_packets_are_listed(folder, picture, packet):
    write_xmp(picture, folder / "a.webp", packet)
    write_xmp(picture, folder / "b.webp", make_xmp("sea"))
    (folder / "c.jpg").write_bytes(b"no picture")
    rejects = Rejects()
    assert list_items(read_folder(folder, rejects=rejects)) == {"b.webp": ("sea",)}
    assert rejects.counts == {"unreadable XMP packet": 1, "not a picture": 1}


def test_unsupported_formats_are_not_opened_for_keywords(folder, picture):
    picture(folder / "a.pcx").rename(folder / "a.jpg")
    with pytest.raises(RowError, match="unreadable picture"):
        read_keywords(folder / "a.jpg")


@settings(deadline=None)
@given(at=st.integers(0, 700), byte=st.integers(0, 255))
def test_flipped_byte_never_stops_the_reader(tmp_path_factory, at, byte):
    path = tmp_path_factory.mktemp("xmp") / "a.webp"
    Image.new("RGB", (3, 3)).save(path, xmp=make_xmp("sea"))
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    path.write_bytes(content)
    try:
        keywords = read_keywords(path)
    except RowError as bad:
        keywords = (bad.reason,)
    assert all(isinstance(keyword, str) for keyword in keywords)


cells = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda c: st.lists(c, max_size=3))
json_rows = st.lists(
    st.dictionaries(st.sampled_from(["file_name", "labels", "label", "group", "x"]), cells), max_size=4
)


@settings(deadline=None)
@given(
    name=st.sampled_from(["metadata.csv", "metadata.jsonl"]),
    text=st.one_of(
        st.binary(max_size=60),
        st.text('file_name,label\n"{}:[]; ', max_size=60).map(str.encode),
        st.text('a.png,;"\n', max_size=60).map(lambda t: b"file_name,labels\n" + t.encode()),
        json_rows.map(lambda rows: "\n".join(map(json.dumps, rows)).encode()),
    ),
)
def test_any_metadata_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, name, text):
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(text)
    entries = result_or_sentence(read_metadata, path, rejects=Rejects())
    if entries is not None:
        assert all(entry.file_name for entry in entries)


labels = st.lists(st.text("abc é犬,", min_size=1, max_size=5).filter(str.strip), min_size=1, max_size=3)


@settings(deadline=None)
@given(rows=st.lists(labels, min_size=1, max_size=4), form=st.sampled_from(["metadata.csv", "metadata.jsonl"]))
def test_valid_metadata_are_read_exactly(tmp_path_factory, rows, form):
    path = tmp_path_factory.mktemp("valid") / form
    if form == "metadata.csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["file_name", "labels"], *[["0", "x;y"]] * 9])
            csv.writer(stream).writerows([str(i), ";".join(names)] for i, names in enumerate(rows))
    else:
        write_jsonl(path.parent, [{"file_name": str(i), "labels": names} for i, names in enumerate(rows)])
    entries = read_metadata(path, rejects=Rejects())[9 * (form == "metadata.csv") :]
    assert [list(entry.labels) for entry in entries] == rows


@pytest.mark.parametrize("labels_from", ["auto", "metadata", "folders"])
def test_folders_without_pictures_or_metadata_are_refused(folder, picture, labels_from):
    sentence = "has no metadata.csv" if labels_from == "metadata" else "holds no pictures"
    with pytest.raises(InputError, match=sentence):
        read_folder(folder, labels_from=labels_from, rejects=Rejects())
    picture(folder / "a.png")
    sentence = {
        "auto": "no labels: there are no sub-folders to tell them apart, no metadata.csv or metadata.jsonl",
        "metadata": "has no metadata.csv",
        "folders": "no labelled pictures are left",
    }[labels_from]
    with pytest.raises(InputError, match=sentence):
        read_folder(folder, labels_from=labels_from, rejects=Rejects())


def test_metadata_without_pictures_are_refused(folder):
    write_csv(folder, METADATA[:1])
    with pytest.raises(InputError, match=r"holds no pictures .* metadata\.csv alone is not enough"):
        read_folder(folder, rejects=Rejects())


def test_strict_refuses_the_first_unlabelled_picture(folder, picture):
    picture(folder / "dog" / "1.png")
    picture(folder / "loose.png")
    with pytest.raises(InputError, match=r"loose\.png: picture without labels"):
        read_folder(folder, rejects=Rejects(strict=True))


@pytest.mark.data
def test_metadata_label_a_thousand_photos(data, folder):
    images = sorted((data / "imagen_200x5" / "images").iterdir())
    rows = [
        {"file_name": f"photos/{p.name}", "labels": p.stem.split("_", 2)[2], "group": "", "time": ""} for p in images
    ]
    shutil.copytree(data / "imagen_200x5" / "images", folder / "photos")
    write_csv(folder, [row | {"split": ""} for row in rows])
    rejects = Rejects()
    source = read_folder(folder, rejects=rejects)
    assert len(source) == 1000
    assert len(rejects) == 0
    assert len({label for p in source for label in p.labels}) <= 200
    with Image.open(next(iter(source)).content) as image:
        assert max(image.size) <= 192


@pytest.mark.parametrize(
    ("name", "content", "tool"),
    [
        ("labels/1.txt", "0 0.5 .5 0.25 1e-2\n", "boxes of YOLO"),
        ("1.json", '{"version": "5", "shapes": []}', "shapes of labelme"),
        ("annotations.xml", "<?xml version='1.0'?>\n<annotations><image/></annotations>", "tags of CVAT"),
        (
            "annotations/1.xml",
            "<annotation><object/></annotation>",
            "objects of Pascal VOC without JPEGImages or Annotations",
        ),
    ],
)
def test_annotation_files_of_other_tools_are_named(folder, picture, name, content, tool):
    picture(folder / "images" / "1.jpg")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=f"{name} holds {tool}.*; export them as COCO's JSON, or as a table of files"):
        read_folder(folder, rejects=Rejects())


def test_subject_files_label_documents(folder):
    for name, content in {
        "a.txt": "waves",
        "a.tsv": "<http://y/p1>\tsea\n<http://y/p2>\n",
        "b.txt": "x",
        "b.key": "dog",
    }.items():
        (folder / name).write_text(content)
    assert list_items(read_folder(folder, rejects=Rejects())) == {"a.txt": ("sea", "http://y/p2"), "b.txt": ("dog",)}
    assert not any(list_items(read_folder(folder, labels_from="none", rejects=Rejects())).values())
