"""Songs that the same people hear: pairs counted by hand and by force, limits, bad lines, bytes."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.datasets import million_song
from wsabie.io.datasets.million_song import (
    find_co_listened_pairs,
    read_listening_counts,
    read_song_tracks,
    write_co_listened_pairs,
)
from wsabie.io.formats.pair_list import read_id_pairs
from wsabie.storage.rejects import Rejects


def write_plays(path: Path, songs_of_user: dict[str, str]) -> Path:
    """A list of who heard what, songs of one letter."""
    path.write_text(
        "".join(f"{user}\t{song}\t{1 + i}\n" for user, songs in songs_of_user.items() for i, song in enumerate(songs))
    )
    return path


def test_pairs_need_enough_common_listeners(tmp_path: Path) -> None:
    counts = read_listening_counts(
        write_plays(tmp_path / "plays.txt", {"u": "abc", "v": "ab", "w": "ad", "x": "d"}), rejects=Rejects()
    )
    assert list(find_co_listened_pairs(counts, least=1)) == [("a", "b", 2), ("a", "c", 1), ("a", "d", 1), ("b", "c", 1)]
    assert list(find_co_listened_pairs(counts, least=2)) == [("a", "b", 2)]
    assert list(find_co_listened_pairs(counts, least=1, cosine=0.8)) == [
        ("a", "b", 2)
    ]  # 2 / sqrt(3 * 2); b and c: 1 / sqrt(2)
    assert list(find_co_listened_pairs(counts, least=3)) == []


def test_song_keeps_its_best_partners(tmp_path: Path) -> None:
    """d has a alone, so that a has a partner which it did not choose itself."""
    counts = read_listening_counts(
        write_plays(tmp_path / "plays.txt", {"u": "abc", "v": "ab", "w": "ad"}), rejects=Rejects()
    )
    assert list(find_co_listened_pairs(counts, least=1, top=1)) == [("a", "b", 2), ("a", "d", 1), ("b", "c", 1)]


def test_pair_counts_equal_a_brute_force_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    users = {f"u{i}": "".join(rng.choice(list("abcdefghij"), rng.integers(1, 9), replace=False)) for i in range(60)}
    monkeypatch.setattr(million_song, "_CELLS", 50)
    pair_counts = {
        frozenset((a, b)): n
        for a, b, n in find_co_listened_pairs(
            read_listening_counts(write_plays(tmp_path / "plays.txt", users), rejects=Rejects()), least=5, top=99
        )
    }
    expected = {
        frozenset(pair): sum(set(pair) <= set(songs) for songs in users.values())
        for pair in combinations("abcdefghij", 2)
    }
    assert pair_counts == {pair: n for pair, n in expected.items() if n >= 5}


def test_heavy_users_are_capped(tmp_path: Path) -> None:
    counts = read_listening_counts(
        write_plays(tmp_path / "plays.txt", {"heavy": "abcdefghij", "u": "ab"}), heavy=4, rejects=Rejects()
    )
    assert (counts.n_capped, counts.song_users.sum(axis=0).tolist()) == (1, [[4, 2]])
    again = read_listening_counts(tmp_path / "plays.txt", heavy=4, rejects=Rejects())
    assert (counts.song_users != again.song_users).nnz == 0


def test_songs_are_mapped_to_tracks(tmp_path: Path) -> None:
    (tmp_path / "unique_tracks.txt").write_text(
        "T1<SEP>a<SEP>x<SEP>y\nT2<SEP>a<SEP>x<SEP>y\nT3<SEP>b<SEP>x<SEP>y\nbad\n"
    )
    rejects = Rejects()
    tracks = read_song_tracks(tmp_path, rejects=rejects)
    assert tracks == {"a": ["T1", "T2"], "b": ["T3"]}
    counts = read_listening_counts(
        write_plays(tmp_path / "plays.txt", {"u": "abz"}), song_filter=tracks, rejects=rejects
    )
    assert write_co_listened_pairs(tmp_path / "out.tsv", find_co_listened_pairs(counts, least=1), tracks) == 2
    assert list(read_id_pairs(tmp_path / "out.tsv", rejects=Rejects())) == [("T1", "T3"), ("T2", "T3")]
    assert [(reason, detail) for _, reason, detail in rejects.listed] == [
        ("line that is not track, song, artist and title", "'bad'"),
        ("song that is not in the list", "z"),
    ]


def test_bad_lines_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plays.txt"
    path.write_bytes(b"u\ta\t1\nu\tb\nu\tb\t-1\nu\tb\tx\n\tb\t1\n\xff\tb\t1\n\nu\tb\t0\nu\tc\t" + b"9" * 9999 + b"\n")
    rejects = Rejects()
    assert read_listening_counts(path, rejects=rejects).songs == ["a", "c"]
    assert [where.rpartition(":")[2] for where, _, _ in rejects.listed] == ["2", "3", "4", "5", "6"]
    with pytest.raises(InputError, match=r"plays\.txt:2"):
        read_listening_counts(path, rejects=Rejects(strict=True))
    monkeypatch.setattr(million_song, "MAX_PLAYS", 1)
    with pytest.raises(InputError, match="more than 1 usable lines; give a part of it"):
        read_listening_counts(path, rejects=Rejects())
    path.write_text("u\tb\t0\n")
    with pytest.raises(InputError, match="user TAB song TAB plays"):
        read_listening_counts(path, rejects=Rejects())


@given(st.binary(max_size=200))
def test_any_bytes_give_counts_or_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "plays.txt"
    path.write_bytes(content)
    try:
        counts = read_listening_counts(path, rejects=Rejects())
    except InputError:
        return
    assert counts.song_users.shape[0] == len(counts.songs) > 0
