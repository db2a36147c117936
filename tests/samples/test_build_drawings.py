"""The drawings part of the builder: parsing, likeness, and the whole on a small made-up collection."""

import io
import json
import sys
from pathlib import Path, PurePosixPath
from xml.etree.ElementTree import ParseError

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from wsabie.storage.rejects import Rejects

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import build_sample
from sample import drawings, similar
from sample.clipart import find_drawings, labels_of, parse_metadata, stem
from sample.pictures import flattened, shrunk, webp
from sample.raster import RasterError, drawn_box, framed
from sample.similar import alike_pairs, close_pairs, components, merge_groups
from sample.text import clean_label

SVG = """<svg xmlns="http://www.w3.org/2000/svg"><metadata>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:cc="http://web.resource.org/cc/"><cc:Work rdf:about=""><dc:title>{title}</dc:title>
<dc:subject><rdf:Bag><rdf:li></rdf:li>{tags}</rdf:Bag></dc:subject>
<dc:creator><cc:Agent><dc:title>Ann Artist</dc:title></cc:Agent></dc:creator>
<cc:license rdf:resource="{licence}"/></cc:Work></rdf:RDF></metadata></svg>"""
PUBLIC = "http://web.resource.org/cc/PublicDomain"


def svg(*tags, title="A drawing", licence=PUBLIC):
    items = "".join(f"<rdf:li>{tag}</rdf:li>" for tag in tags)
    return SVG.format(title=title, tags=items, licence=licence)


def test_metadata_of_a_drawing():
    metadata = parse_metadata(svg("animal", "Sea  lion", title=" Seal\n one ").encode())
    assert (metadata.title, metadata.tags, metadata.is_public_domain) == ("Seal one", ("animal", "Sea lion"), True)


@pytest.mark.parametrize(
    ("licence", "free"), [(PUBLIC, True), ("", True), ("Public Domain", True), ("http://example.org/GPL/2.0/", False)]
)
def test_only_the_public_domain_is_taken(licence, free):
    assert parse_metadata(svg("a", licence=licence).encode()).is_public_domain is free


words = st.text("<>/?!=\"'&;:[] rdf:lidc:subjecttitlexmlns", max_size=60)
headed = st.sampled_from(["utf-8", "utf-16", "utf-32", "gb2312", "rot13", "idna", "x"]).map(
    lambda name: f'<?xml version="1.0" encoding="{name}"?><a/>'
)


@given(st.one_of(st.binary(max_size=60), st.one_of(words, headed, words.map(svg)).map(str.encode)))
@settings(deadline=None)
def test_any_bytes_are_metadata_or_not_well_formed(content):
    try:
        metadata = parse_metadata(content)
    except ParseError:
        return
    assert all((*metadata.tags, *metadata.licences))
    assert labels_of(metadata.tags) == labels_of(labels_of(metadata.tags))


@given(st.lists(st.text(max_size=50), max_size=8))
@settings(deadline=None)
def test_labels_of_any_words_are_clean(words):
    labels = labels_of(words)
    assert len(set(labels)) == len(labels)
    for label in labels:
        assert 0 < len(label) <= 40
        assert not set(label) & set("_,;/")
        assert label == clean_label(label)


def test_a_name_that_is_all_number_stays():
    assert stem(PurePosixPath("cards/001.svg")) == "cards/001"


def test_links_are_further_places_of_a_drawing(tmp_path):
    (tmp_path / "animals" / "birds").mkdir(parents=True)
    (tmp_path / "animals" / "birds" / "owl.svg").write_text(svg("owl"))
    (tmp_path / "animals" / "owl.svg").symlink_to("birds/owl.svg")
    (drawing,) = find_drawings(tmp_path)
    assert drawing.id == "drawing-animals/birds/owl"
    assert drawing.places == (PurePosixPath("animals/birds/owl.svg"), PurePosixPath("animals/owl.svg"))
    assert drawing.folder_names == ["animals", "birds", "animals"]


def png(picture):
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def test_transparency_becomes_white_and_the_frame_fits():
    page = Image.new("RGBA", (200, 100), (0, 0, 0, 0))
    page.paste((255, 0, 0, 255), (150, 20, 190, 40))
    flat = flattened(png(page))
    assert flat.getpixel((0, 0)) == (255, 255, 255)
    assert drawn_box(flat) == (150, 20, 190, 40)
    cut = framed(flat, drawn_box(flat))
    assert cut.size == (42, 22)
    assert shrunk(cut, 21).size == (21, 11)
    assert drawn_box(Image.new("RGB", (9, 9), (250, 250, 250))) is None


def test_webp_is_the_same_each_time():
    picture = pattern(3)
    assert webp(picture, 50) == webp(picture, 50)
    assert Image.open(io.BytesIO(webp(picture, 50))).size == picture.size


def pattern(seed, size=(96, 96)):
    noise = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.NEAREST)


def test_alike_are_copies_but_not_plain_or_stretched_pictures():
    black, grey = Image.new("RGB", (90, 90), "black"), Image.new("RGB", (90, 90), (40, 40, 40))
    pictures = [pattern(1), pattern(2), pattern(1, (120, 120)), pattern(1, (96, 48)), black, grey]
    pairs, cosines = alike_pairs(pictures, 0.95)
    assert pairs.tolist() == [[0, 2]]
    assert cosines == pytest.approx([1], abs=1e-4)


@pytest.mark.parametrize("n", [0, 1, 3, 10])
def test_pairs_by_blocks_are_all_pairs(monkeypatch, n):
    monkeypatch.setattr(similar, "_BLOCK", 3)
    features = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
    progress = []
    pairs = close_pairs(features, 0.5, progress.append)
    cosines = features @ features.T
    assert {tuple(pair) for pair in pairs.tolist()} == {
        (i, j) for i in range(n) for j in range(i + 1, n) if cosines[i, j] >= 0.5
    }
    assert (pairs.shape[1], sum(progress)) == (2, n)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
@settings(deadline=None)
def test_components_are_the_closure_of_the_pairs(pairs):
    first = components(10, np.array(pairs, np.int64).reshape(-1, 2)).tolist()
    assert all(first[i] == first[j] for i, j in pairs)
    assert all(first[i] <= i and first[first[i]] == first[i] for i in range(10))
    assert len(set(first)) >= 10 - len(pairs)


def test_groups_are_joined_by_their_members():
    assert merge_groups(["x", "y", "x", "z"], np.empty((0, 2), np.int64)) == ["x", "y", "x", "z"]
    assert merge_groups(["x", "y", "x", "z"], np.array([[2, 3]])) == ["x", "y", "x", "x"]


@pytest.fixture
def clipart(tmp_path, monkeypatch):
    """A small collection; the rasteriser draws a pattern by the length of the title, nothing for "empty"."""
    files = {
        "animals/owl_01.svg": svg("owl", title="owl"),
        "animals/owl_02.svg": svg("eule", title="owl in blue"),
        "buildings/copy.svg": svg("owl", "copied", title="owl"),
        "buildings/house.svg": svg("house", title="a house in town"),
        "buildings/untagged.svg": svg("unsorted"),
        "buildings/gpl.svg": svg("house", licence="http://example.org/GPL/"),
        "buildings/broken.svg": "<svg",
        "buildings/empty.svg": svg("nothing", title="empty"),
        "shapes/stars/star5.svg": svg("star"),
    }
    for name, content in files.items():
        (tmp_path / "svg" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "svg" / name).write_text(content)

    def fake(file, side):
        title = parse_metadata(file.read_bytes()).title
        if title == "empty":
            raise RasterError("nothing to see on white")
        return pattern(len(title), (side, side))

    monkeypatch.setattr(drawings, "rasterise", fake)
    monkeypatch.setattr(drawings, "rasteriser_version", lambda: "a pencil")
    return tmp_path / "svg"


def test_drawings_are_sifted_and_copies_give_their_labels(clipart):
    rejects = Rejects()
    rows, about = drawings.build_drawings(clipart, rejects)
    assert [(row.id, row.labels) for row in rows] == [
        ("drawing-animals/owl_01", ["owl", "animals", "copied", "buildings"]),
        ("drawing-animals/owl_02", ["eule", "animals"]),
        ("drawing-buildings/house", ["house", "buildings"]),
    ]
    assert rows[0].group == rows[1].group != rows[2].group
    assert [row.category for row in rows] == ["animals", "animals", "buildings"]
    assert about["pictures"].endswith("drawn by a pencil")
    assert rejects.counts == {
        "no tags": 1, "names another licence": 1, "not well-formed XML": 1, "nothing to see on white": 1,
        "generated star shape": 1, "copy of an earlier drawing": 1,
    }  # fmt: skip


def test_the_command_writes_the_part_and_lists_what_it_left_out(clipart, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build_sample, "which", lambda name: name)
    options = ["--parts", "drawings", "--clipart", str(clipart), "--out", str(tmp_path)]
    assert build_sample.main([*options, "--rejects", str(tmp_path / "rejects.jsonl")]) == 0
    output = capsys.readouterr().out
    assert "drawings: 3 pictures in 2 groups (largest 2)" in output
    assert "6 skipped" in output
    assert len(pq.read_table(tmp_path / "drawings.parquet")) == 3
    listed = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert {
        "where": "drawing-buildings/copy",
        "reason": "copy of an earlier drawing",
        "detail": "drawing-animals/owl_01",
    } in listed
    assert len(listed) == 6
