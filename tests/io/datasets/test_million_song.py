"""Tables of the Million Song Dataset: tracks, genres, listeners."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.datasets import million_song
from wsabie.io.datasets.attribute_recognition import read_attributes
from wsabie.io.datasets.million_song import GENRES, read_million_song_attributes
from wsabie.storage.rejects import Rejects

TRACKS = """TRMMMYQ128F932D901<SEP>SOQMMHC12AB0180CB8<SEP>Faster Pussy cat<SEP>Silent Night
TRMMMKD128F425225D<SEP>SOVFVAK12A8C1350D9<SEP>Karkkiautomaatti<SEP>Tanssi vaan
TRMMMRX128F93187D9<SEP>SOVFVAK12A8C1350D9<SEP>Karkkiautomaatti<SEP>Tanssi vaan
TRMMMCH128F425532C<SEP>SOBNYVR12A8C13558C<SEP><SEP>Si Vos Querés
"""
LIST = "# MSD genres\n#\nTRMMMYQ128F932D901\tRock\tPop_Rock\nTRMMMCH128F425532C\tReggae\n"
A, B, B2, C = (line.split("<SEP>")[0] for line in TRACKS.splitlines())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unique_tracks.txt").write_text(TRACKS, encoding="utf-8")
    return tmp_path


def test_tracks_have_artists_and_genres(folder: Path) -> None:
    (folder / "unique_artists.txt").write_text("AR002UA1187B9A637D<SEP>7752a11c<SEP>TRMUOZE12903CDF721<SEP>Sway\n")
    makers = [(A, "Faster Pussy cat"), (B, "Karkkiautomaatti"), (B2, "Karkkiautomaatti")]
    assert read_attributes(folder).pairs == {"artist": makers}
    (folder / "msd_tagtraum_cd1.cls").write_text(LIST)
    related = read_attributes(folder)
    assert related.ids == [A, B, B2, C]
    assert related.pairs == {"artist": makers, "genre": [(A, "Rock"), (A, "Pop_Rock"), (C, "Reggae")]}
    (folder / "msd_tagtraum_cd2.cls").write_text("")
    with pytest.raises(InputError, match=r"several lists of genres \(msd_tagtraum_cd1.cls, msd_tagtraum_cd2.cls\)"):
        read_attributes(folder)
    assert read_million_song_attributes(folder, genres=folder / "msd_tagtraum_cd1.cls", rejects=Rejects()) == related


def test_listeners_are_read_on_request(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "train_triplets.txt"
    path.write_text("u1\tSOVFVAK12A8C1350D9\t3\nu1\tSOQMMHC12AB0180CB8\t0\nu2\tSOX\t1\nu2\tSOQMMHC12AB0180CB8\n")
    assert "listener" not in read_attributes(folder).pairs
    rejects = Rejects()
    related = read_million_song_attributes(folder, listeners=path, rejects=rejects)
    assert related.pairs["listener"] == [(B, "u1"), (B2, "u1")]
    assert [(where, reason) for where, reason, _ in rejects.listed] == [
        (f"{path}:3", "song that is not in the list"),
        (f"{path}:4", "line that is not user, song and plays"),
    ]
    monkeypatch.setattr(million_song, "MAX_TRIPLETS", 1)
    with pytest.raises(InputError, match="has more than 1 lines; give a part of it"):
        read_million_song_attributes(folder, listeners=path, rejects=Rejects())


def test_bad_lines_are_listed(folder: Path) -> None:
    tracks, genres = folder / "unique_tracks.txt", folder / "a.cls"
    with tracks.open("ab") as file:
        file.write(f"{A}<SEP>S<SEP>X<SEP>Y\n<SEP>S<SEP>X<SEP>Y\nTR<SEP>S\n\n".encode() + b"\xff<SEP>\n")
    genres.write_text(f"TR\tRock\n{A}\n{A}\ta\tb\tc\n{B}\t \n")
    rejects = Rejects()
    assert "genre" not in read_attributes(folder, rejects=rejects).pairs
    assert [(where, reason) for where, reason, _ in rejects.listed] == [
        (f"{tracks}:5", "duplicate id"),
        (f"{tracks}:6", "row without an id"),
        (f"{tracks}:7", "line that is not track, song, artist and title"),
        (f"{tracks}:9", "text that is not UTF-8"),
        (f"{genres}:1", "track that is not in the list"),
        (f"{genres}:2", "line that is not a track and its genres"),
        (f"{genres}:3", "line that is not a track and its genres"),
    ]


@example(b"")
@given(st.lists(st.sampled_from([b"<SEP>", b"a", b"\t", b"#", b"\n", b"\xff", b"1"]), max_size=40).map(b"".join))
def test_any_lines_give_tracks_or_one_sentence(result_or_sentence, tmp_path_factory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("m")
    for name in ("unique_tracks.txt", GENRES.replace("*", "a"), "train_triplets.txt"):
        (folder / name).write_bytes(content)
    (folder / "unique_tracks.txt").write_bytes(TRACKS.encode() + content)
    files = {"listeners": folder / "train_triplets.txt", "rejects": Rejects()}
    related = result_or_sentence(read_million_song_attributes, folder, **files)
    if related is not None:
        assert related.ids[:4] == [A, B, B2, C]
        assert related.pairs["artist"][0] == (A, "Faster Pussy cat")
    else:
        assert content
