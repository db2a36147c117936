"""Properties of the bundled sample, whoever built it."""

import io
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from wsabie import samples
from wsabie.core.errors import InputError
from wsabie.samples import PARTS, get_sample_path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from sample.similar import alike_pairs

SIDES = {"emoji": 96, "drawings": 128}
LARGEST = {"emoji": 5.0e6, "drawings": 14.0e6}  # bytes
COPIES = 0.999  # cosine of thumbnails that only copies have, after lossy coding


@pytest.fixture(scope="module", params=PARTS)
def part(request):
    return request.param


@pytest.fixture(scope="module")
def table(part):
    return pq.read_table(get_sample_path(part))


@pytest.fixture(scope="module")
def pictures(table):
    return [Image.open(io.BytesIO(content.as_py())) for content in table["image"]]


@pytest.fixture(scope="module")
def emoji():
    return {row["title"]: row for row in pq.read_table(get_sample_path("emoji")).drop_columns(["image"]).to_pylist()}


def test_an_unknown_sample_names_those_there_are():
    with pytest.raises(InputError, match="no sample called 'photos'; choose one of emoji, drawings"):
        get_sample_path("photos")


def test_a_part_that_is_not_bundled_says_where_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(samples, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(InputError, match=r"'drawings' is not in this install; it is the file .*/drawings\.parquet"):
        get_sample_path("drawings")


def test_schema(part, table):
    names = ["id", "image", "labels", "group", "part", "title", "category"]
    assert table.column_names == [*names, "languages"] if part == "emoji" else names
    assert [str(table.schema.field(name).type) for name in names[:4]] == [
        "string", "binary", "list<element: string>", "string",
    ]  # fmt: skip
    assert set(table["part"].to_pylist()) == {part}
    assert all(table[name].null_count == 0 for name in table.column_names)


def test_the_file_tells_its_licence_and_source(table):
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert about["version"] == "1"
    assert all(about[key] for key in ("licence", "source", "pictures", "title"))


def test_size_in_bytes(part):
    assert get_sample_path(part).stat().st_size <= LARGEST[part]


def test_number_of_pictures(part, table):
    assert len(table) >= {"emoji": 3_600, "drawings": 5_000}[part]


def test_ids_are_unique(table):
    ids = table["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert all(ids)


def test_labels_are_normalised(table):
    for labels in table["labels"].to_pylist():
        assert labels
        assert len(set(labels)) == len(labels)
    for label in {label for labels in table["labels"].to_pylist() for label in labels}:
        assert label
        assert label == unicodedata.normalize("NFC", " ".join(label.split()))
        assert label == unicodedata.normalize("NFC", label.lower())


def test_many_labels_have_two_pictures_or_more(part, table):
    counts = Counter(label for labels in table["labels"].to_pylist() for label in labels)
    assert sum(count > 1 for count in counts.values()) >= {"emoji": 25_000, "drawings": 700}[part]


def test_pictures_decode_and_show_something(part, pictures):
    for picture in pictures:
        picture.load()
        assert (picture.format, picture.mode) == ("WEBP", "RGB")
        assert max(picture.size) <= SIDES[part]
        assert min(low for low, _ in picture.getextrema()) < 250


def test_no_group_is_large(part, table):
    sizes = Counter(table["group"].to_pylist())
    assert len(sizes) > len(table) / 3
    assert max(sizes.values()) < 110


def test_copies_are_in_one_group(table, pictures):
    groups = table["group"].to_pylist()
    pairs, _ = alike_pairs([picture.convert("RGB") for picture in pictures], COPIES)
    split_pairs = [(i, j) for i, j in pairs.tolist() if groups[i] != groups[j]]
    assert split_pairs == []


def test_labels_of_a_dog_in_many_languages(emoji):
    labels = emoji["dog"]["labels"]
    assert {"dog", "hond", "perro", "pes", "köpek", "anjing", "狗", "犬", "개", "собака", "كلب"} <= set(labels)
    used = dict(zip(labels, emoji["dog"]["languages"], strict=True))
    assert used["hond"] == ["nl"]
    assert used["hund"] == ["de", "sv", "da"]


def test_emoji_have_labels_in_all_languages(emoji):
    about = pq.read_schema(get_sample_path("emoji")).metadata
    languages = about[b"languages"].decode().split()
    assert len(languages) >= 20
    counts = Counter(
        used for row in emoji.values() for used in {language for many in row["languages"] for language in many}
    )
    assert set(counts) == set(languages)
    assert min(counts.values()) > 0.99 * len(emoji)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("woman farmer: medium skin tone", "man farmer"),
        ("health worker: dark skin tone", "woman health worker"),
        ("flag: Norway", "flag: Svalbard & Jan Mayen"),
        ("Santa Claus", "Mrs. Claus"),
    ],
)
def test_variants_share_a_group(emoji, first, second):
    assert emoji[first]["group"] == emoji[second]["group"]


@pytest.mark.parametrize(
    ("first", "second"), [("dog", "dolphin"), ("farmer", "cook"), ("flag: Norway", "flag: Iceland")]
)
def test_concepts_do_not_share_a_group(emoji, first, second):
    assert emoji[first]["group"] != emoji[second]["group"]
