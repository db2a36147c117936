"""The builder's pure functions for labels, emoji and files, and its command."""

import doctest
import importlib
import io
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from xml.sax.saxutils import escape

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from wsabie.samples import get_sample_path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import build_sample
from sample import similar
from sample.cldr import cldr_version, members, read_annotations, read_categories
from sample.concepts import concept, hexadecimal
from sample.emoji import LANGUAGES, category_of
from sample.glyphs import EmojiFont, open_font
from sample.pictures import flattened, shrunk
from sample.tables import Row, write_rows
from sample.text import clean_label, keywords

MODULES = ("text", "cldr", "concepts", "clipart", "similar")
LDML = """<ldml><annotations><annotation cp="🐕">{words}</annotation>
<annotation cp="🐕" type="tts">{name}</annotation></annotations></ldml>"""


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    failed, n_examples = doctest.testmod(importlib.import_module(f"sample.{name}"))
    assert (failed, n_examples > 0) == (0, True)


@given(st.text(max_size=20), st.sampled_from(["en", "tr"]))
@settings(deadline=None)
def test_cleaning_twice_changes_nothing(text, language):
    once = clean_label(text, language)
    assert clean_label(once, language) == once
    assert once == unicodedata.normalize("NFC", once).strip()


def test_lower_case_follows_the_language():
    assert clean_label("Straße") == "straße"
    assert clean_label("ΣΚΎΛΟΣ") == "σκύλος"
    assert clean_label("İSTANBUL IRMAK", "tr") == "istanbul ırmak"


def test_keywords_leave_out_empty_and_inherited_ones():
    assert keywords(" dog | pet |  | ↑↑↑ | Pet") == ["dog", "pet"]


xml_text = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("|;&<># "),
    max_size=20,
)


@given(words=xml_text, name=xml_text)
@settings(deadline=None)
def test_any_annotation_gives_clean_labels(tmp_path_factory, words, name):
    root = tmp_path_factory.mktemp("cldr")
    write_cldr(root, "annotations", "en", escape(words), escape(name))
    (root / "annotationsDerived").mkdir()
    (root / "annotationsDerived" / "en.xml").write_text("<ldml/>")
    (annotation,) = read_annotations(root, ["en"]).values()
    assert annotation.title == name
    assert all(label == clean_label(label) and label for label in annotation.labels)


@given(st.text(st.characters() | st.sampled_from("[]{}-"), max_size=12))
@settings(deadline=None)
def test_members_of_any_set_are_strings(unicode_set):
    assert not [member for member in members(unicode_set) if not member or member.isspace() or "\ufe0f" in member]


def write_cldr(root, folder, language, words, name):
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / f"{language}.xml").write_text(LDML.format(words=words, name=name), "utf-8")


def test_one_string_in_two_languages_is_one_label(tmp_path):
    for language, words in {"en": "dog | pet", "de": "Haustier | Hund", "sv": "djur | hund"}.items():
        write_cldr(tmp_path, "annotations", language, words, words.split(" | ")[-1])
        (tmp_path / "annotationsDerived").mkdir(exist_ok=True)
        (tmp_path / "annotationsDerived" / f"{language}.xml").write_text("<ldml/>")
    annotations = read_annotations(tmp_path, ["en", "de", "sv"])
    assert list(annotations) == ["🐕"]
    assert annotations["🐕"].title == "pet"
    assert annotations["🐕"].labels == {
        "pet": ["en"], "dog": ["en"], "hund": ["de", "sv"], "haustier": ["de"], "djur": ["sv"],
    }  # fmt: skip


def test_cldr_version_is_read_from_its_grammar(tmp_path):
    assert cldr_version(tmp_path) == "unknown"
    (tmp_path / "dtd").mkdir()
    (tmp_path / "dtd" / "ldml.dtd").write_text('<!ATTLIST version cldrVersion CDATA #FIXED "41" >')
    assert cldr_version(tmp_path) == "41"


def test_categories_come_from_unicode_sets(tmp_path):
    (tmp_path / "properties").mkdir()
    text = "# comment ; a ; b\n[🐕-🐗{👨‍🌾}] ;\tAnimals & Nature\t; animal-mammal\n\nbroken\n"
    (tmp_path / "properties" / "labels.txt").write_text(text, "utf-8")
    categories = read_categories(tmp_path)
    assert set(categories) == {"🐕", "🐖", "🐗", "👨‍🌾"}
    assert category_of("🐖", categories) == "Animals & Nature/animal-mammal"
    assert category_of("🐕‍🦺", categories) == "Animals & Nature/animal-mammal"
    assert category_of("🍕", categories) == "other"


def test_presentation_selectors_are_dropped_from_sets():
    assert members("[☺️{🕵️‍♀️}]") == ["☺", "🕵‍♀"]


@pytest.mark.parametrize(
    "variants",
    [
        ["👩🏽‍🌾", "👨‍🌾", "🧑🏿‍🌾"],
        ["🏃", "🏃‍♀", "🏃🏿‍♂", "🏃‍♀‍➡", "🏃🏽‍➡"],
        ["👨‍🦰", "👩🏾", "🧑", "👩🏽‍🦲"],
        ["👪", "👨‍👩‍👧‍👦", "👩‍👦"],
        ["💏", "👩🏽‍❤‍💋‍👨🏿", "💏🏽"],
        ["💑", "🧑🏻‍❤‍🧑🏾"],
        ["👭", "🧑‍🤝‍🧑", "👩🏼‍🤝‍👨🏿"],
        ["🤝", "🤝🏽", "🫱🏻‍🫲🏿"],
        ["🎅🏽", "🤶", "🧑‍🎄"],
        ["🏻", "🏿"],
        ["❤", "❤️"],
    ],
)
def test_variants_are_one_concept(variants):
    assert len({concept(variant) for variant in variants}) == 1


def test_other_concepts_stay_apart():
    distinct_emoji = [
        "🐕",
        "🐶",
        "👩‍🌾",
        "👩‍🍳",
        "👩",
        "👧",
        "👵",
        "♀",
        "♂",
        "➡",
        "🇫🇷",
        "🇩🇪",
        "1⃣",
        "2⃣",
        "👪",
        "💑",
        "💏",
    ]
    assert len({concept(emoji) for emoji in distinct_emoji}) == len(distinct_emoji)


@given(st.text(st.characters(min_codepoint=0x1F300, max_codepoint=0x1FAFF), min_size=1, max_size=6))
@settings(deadline=None)
def test_every_sequence_has_a_concept_of_its_own_kind(sequence):
    base = concept(sequence)
    assert base
    assert concept("".join(map(chr, base))) == base
    assert [chr(int(point, 16)) for point in hexadecimal(base).split("-")] == list(map(chr, base))


def test_a_glyph_shows_the_whole_sequence_or_nothing():
    bitmaps = {"dog": SimpleNamespace(imageData=b"png"), "farmer": SimpleNamespace(imageData=b"")}
    characters = {ord("🐕"): "dog", ord("👩"): "woman", 0x200D: "zwj", ord("🌾"): "rice"}
    font = EmojiFont("1", characters, {("woman", "zwj", "rice"): "farmer"}, bitmaps)
    assert (font.glyph("🐕"), font.glyph("👩‍🌾")) == ("dog", "farmer")
    assert [font.glyph(missing) for missing in ("👩", "🐕‍🌾", "x", "🐕🐕")] == [None] * 4
    assert font.png("dog") == b"png"


def row(name, labels=("a",), languages=()):
    return Row(name, b"picture", list(labels), "g", "emoji", "title", "category", [list(codes) for codes in languages])


def test_the_file_is_the_same_each_time_and_holds_the_rows(tmp_path):
    rows = [row("1", ["hund", "dog"], [["de", "sv"], ["en"]]), row("2", ["dog"], [["en"]])]
    sizes = [write_rows(tmp_path / name, rows, {"version": "1"}) for name in ("a.parquet", "b.parquet")]
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert sizes[0] == (tmp_path / "a.parquet").stat().st_size
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [vars(record) for record in rows]


def test_languages_are_left_out_where_there_are_none(tmp_path):
    write_rows(tmp_path / "a.parquet", [row("1")], {})
    assert "languages" not in pq.read_schema(tmp_path / "a.parquet").names


@pytest.mark.parametrize("part", ["emoji", "drawings"])
def test_the_command_says_what_is_missing(part, tmp_path, capsys):
    missing = str(tmp_path / "gone")
    options = ["--parts", part, "--font", missing, "--cldr", missing, "--clipart", missing, "--out", str(tmp_path)]
    assert build_sample.main(options) == 1
    assert f"missing: {missing}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not build_sample.FONT.is_file(), reason="Debian's fonts-noto-color-emoji is not installed")
def test_the_font_still_gives_the_bundled_picture():
    pytest.importorskip("fontTools", reason="fonttools is not installed")
    font = open_font(build_sample.FONT)
    about = pq.read_schema(get_sample_path("emoji")).metadata[b"source"].decode()
    if font.version not in about:
        pytest.skip("another version of the font is installed than the sample was made from")
    bundled = {
        record["id"]: record["image"]
        for record in pq.read_table(get_sample_path("emoji"), columns=["id", "image"]).to_pylist()
    }
    for sequence in ("🐕", "👩🏽‍🌾", "🇳🇴", "1⃣"):
        ours = similar.ink(shrunk(flattened(font.png(font.glyph(sequence))), 96))
        content = bundled[f"emoji-{hexadecimal(tuple(map(ord, sequence)))}"]
        assert ours @ similar.ink(Image.open(io.BytesIO(content))) > 0.99


@pytest.mark.skipif(not build_sample.CLDR.is_dir(), reason="Debian's unicode-cldr-core is not installed")
def test_cldr_still_gives_the_bundled_labels():
    source = pq.read_schema(get_sample_path("emoji")).metadata[b"source"].decode()
    if not source.endswith(f"CLDR {cldr_version(build_sample.CLDR)}"):
        pytest.skip("another version of the CLDR is installed than the sample was made from")
    rows = pq.read_table(get_sample_path("emoji"), columns=["id", "labels"]).to_pylist()
    bundled = next(record["labels"] for record in rows if record["id"] == "emoji-1f415")
    few = read_annotations(build_sample.CLDR, LANGUAGES[:3])["🐕"].labels
    assert list(few) == bundled[: len(few)]
