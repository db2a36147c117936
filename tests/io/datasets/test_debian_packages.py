"""Debian's lists of packages as documents: descriptions, tags, what is wrong with a list."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.debian_packages import read_packages
from wsabie.io.format_detection import detect_format
from wsabie.storage.rejects import Rejects

PACKAGES = """Package: 0ad
Version: 0.0.26-3
Architecture: amd64
Description: Real-time strategy game of ancient warfare
Homepage: https://play0ad.com/
Description-md5: d943033bedada21853d2ae54a2578a7b
Tag: game::strategy, interface::graphical, interface::x11, role::program,
 uitoolkit::sdl, uitoolkit::wxwidgets, use::gameplaying,
 x11::application
Section: games

Package: 0ad-data
Version: 0.0.26-1
Description: Real-time strategy game of ancient warfare (data files)
Description-md5: 26581e685027d5ae84824362a4ba59ee
Tag: role::app-data
Section: games

Package: 2ping
Description: Ping utility to determine directional packet loss
Description-md5: 9c5b5e8a39b8c7e0dbf3ec1a9a0e6a51
"""
TRANSLATION = """Package: 0ad
Description-md5: d943033bedada21853d2ae54a2578a7b
Description-en: Real-time strategy game of ancient warfare
 0 A.D. (pronounced "zero ey-dee") is a free, open-source, cross-platform
 real-time strategy (RTS) game of ancient warfare.
 .
 The game is under heavy development.
"""
NAME = "deb.debian.org_debian_dists_bookworm_main_binary-amd64_Packages"


@pytest.fixture
def lists(tmp_path):
    (tmp_path / NAME).write_text(PACKAGES)
    (tmp_path / "lock").touch()
    return tmp_path


def test_package_becomes_a_document_with_tags(lists):
    source = open_source(lists)
    assert (detect_format(lists), detect_format(lists / NAME), source.modality) == ("packages", "packages", "documents")
    packages = list(source)
    assert [item.id for item in packages] == ["0ad", "0ad-data", "2ping"]
    assert packages[0].content == b"Real-time strategy game of ancient warfare"
    assert packages[0].labels == (
        "game::strategy", "interface::graphical", "interface::x11", "role::program", "uitoolkit::sdl",
        "uitoolkit::wxwidgets", "use::gameplaying", "x11::application",
    )  # fmt: skip
    assert [item.labels for item in packages[1:]] == [("role::app-data",), ()]
    assert {item.labels for item in open_source(lists, labels_from="none")} == {()}


def test_long_descriptions_are_read_from_the_translation(lists):
    (lists / NAME.replace("binary-amd64_Packages", "i18n_Translation-en")).write_text(TRANSLATION)
    texts = [item.content.decode() for item in open_source(lists)]
    assert texts[0].endswith("game of ancient warfare.\n\nThe game is under heavy development.")
    assert texts[2] == "Ping utility to determine directional packet loss"


def test_unusable_packages_are_listed(lists):
    second = lists / "security.debian.org_dists_bookworm-security_main_binary-amd64_Packages"
    second.write_bytes(gzip.compress(b"Package: 0ad\nDescription: again\n\nVersion: 1\n\nPackage: x\nVersion: 1\n"))
    rejects = Rejects()
    assert len(open_source(lists, rejects=rejects)) == 3
    assert sorted((Path(where).name.rpartition(":")[2], reason) for where, reason, _ in rejects.listed) == [
        ("1", "duplicate id"), ("4", "paragraph without a package"), ("6", "document without text"),
    ]  # fmt: skip
    (lists / NAME).write_text("Package: x\nVersion: 1\n")
    with pytest.raises(InputError, match="no documents are left"):
        open_source(lists / NAME)


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([PACKAGES, "Package: a", "Tag:", "\n", " ", ",", "é"]), max_size=6).map(
        lambda parts: "".join(parts).encode()
    )
)
def test_any_bytes_give_documents_or_one_sentence(tmp_path_factory, result_or_sentence, content):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    source = result_or_sentence(read_packages, path, rejects=Rejects())
    if source is not None:
        assert len(list(source)) == len(source)
