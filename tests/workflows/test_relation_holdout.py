"""Held-out parts of a declaration: songs of albums by artists, notes, artists and genres."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from wsabie.evaluation.splits import Split
from wsabie.features.base.item_features import build_label_table
from wsabie.io.space_declaration import read_declaration
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.storage.rejects import Rejects
from wsabie.workflows.spaces.declaration_split import _format_tables
from wsabie.workflows.spaces.declared_data import DeclaredData, collect_declared_data
from wsabie.workflows.spaces.relation_holdout import MAX_PARTNERS, RelationHoldout, split_relations

DECLARATION = """
[kinds.song]
data = "songs.jsonl"

[kinds.note]
data = "notes.jsonl"

[relations.artists]
query = "song"
target = "artist"
names = "artist"

[relations.songs]
query = "artist"
target = "song"
names = "artist"

[relations.like]
query = "song"
target = "song"
pairs = "like.tsv"

[relations.about]
query = "note"
target = "song"
pairs = "about.tsv"

[relations.voices]
query = "song"
target = "song"
names = "artist"
weight = 2

[relations.moods]
query = "song"
target = "song"
names = "labels"
weight = 2

[relations.near]
query = "artist"
target = "artist"
pairs = "near.tsv"

[relations.genres]
query = "artist"
target = "genre"
pairs = "genres.tsv"

[relations.players]
query = "genre"
target = "artist"
pairs = "players.tsv"
"""
SONGS = [f"s{i}" for i in range(80)]
NOTES = [f"n{i}" for i in range(40)]
ALBUM = {song: f"album {i // 4}" for i, song in enumerate(SONGS)}
MOOD = {song: f"mood {i % 3}" for i, song in enumerate(SONGS)}
ARTIST = {song: f"alone {i}" if i % 5 == 0 else f"artist {i % 16}" for i, song in enumerate(SONGS)}
"""Every fifth song has an artist that no other song has."""
LIKE = [(SONGS[i], SONGS[j]) for i in range(80) for j in ((i + 1) % 80, (i + 7) % 80, (i * 3) % 80) if i != j]
ABOUT = [(note, SONGS[(i * k) % 80]) for i, note in enumerate(NOTES) for k in (1, 2, 5, 11)]
NEAR = [(f"artist {i}", f"artist {j}") for i in range(16) for j in range(16) if i != j]
"""Both ways; and artists that are in one pair alone."""
NEAR += [(f"artist {i % 16}", f"new {i}") for i in range(40)]
GENRES = [(f"artist {i}", f"genre {j}") for i in range(16) for j in range(12) if (i + j) % 3]
PLAYERS = [(genre, artist) for artist, genre in GENRES]
FREE = ("near", "genres", "players")


class World(NamedTuple):
    """Declaration with its collected data."""

    declared: Any
    data: DeclaredData

    def dealt(self, share: float = 0.25, seed: int = 0, sides: dict[str, Split] | None = None) -> RelationHoldout:
        return split_relations(self.declared, self.data, share, seed, sides)


def world_of(folder: Path, text: str, rejects: Rejects | None = None) -> World:
    (folder / "world.toml").write_text(text)
    declared, rejects = read_declaration(folder / "world.toml"), Rejects() if rejects is None else rejects
    return World(declared, collect_declared_data(declared, lambda kind, source: build_label_table(source), rejects))


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    rows = {
        "songs": [
            {"id": s, "text": f"song {s}", "labels": [MOOD[s]], "artist": ARTIST[s], "group": ALBUM[s]} for s in SONGS
        ],
        "notes": [{"id": n, "text": f"note {n}"} for n in NOTES],
    }
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    for name, pairs in (("like", LIKE), ("about", ABOUT), ("near", NEAR), ("genres", GENRES), ("players", PLAYERS)):
        write_pairs(folder / f"{name}.tsv", pairs)
    return world_of(folder, DECLARATION)


@pytest.fixture(params=range(4), scope="module")
def dealt(world: World, request: pytest.FixtureRequest) -> RelationHoldout:
    return world.dealt(seed=request.param)


def list_pairs(relation: Relation) -> Iterator[EntityKind]:
    return (end for end in (relation.query, relation.target) if isinstance(end, EntityKind))


def sides_of(dealt: RelationHoldout, kind: str) -> tuple[set[str], set[str]]:
    """The entities of training, and those that were set aside."""
    training_ids = {
        thing
        for relation in dealt.training
        for end in list_pairs(relation)
        if end.name == kind
        for thing in end.ids or ()
    }
    return training_ids, {
        thing for relation in dealt.holdout_kinds if relation.name == kind for thing in relation.ids or ()
    }


def find_relation(relations: list[Relation], name: str) -> Relation:
    return next(relation for relation in relations if relation.name == name)


def list_known_names(dealt: RelationHoldout, kind: str) -> set[str]:
    """The entities without data that training pairs name."""
    lists = [relation for relation in dealt.training if isinstance(relation.pairs, list)]
    return {a for relation in lists if relation.query_kind == kind for a, _ in relation.pairs} | {
        b for relation in lists if relation.target_kind == kind for _, b in relation.pairs
    }


def test_entities_are_on_one_side_and_groups_stay_together(dealt: RelationHoldout) -> None:
    for kind, entity_ids in (("song", SONGS), ("note", NOTES)):
        training_ids, holdout_ids = sides_of(dealt, kind)
        assert not training_ids & holdout_ids
        assert training_ids | holdout_ids == set(entity_ids)
        assert len(holdout_ids) == 0.25 * len(entity_ids)
    songs, holdout_ids = sides_of(dealt, "song")
    assert not {ALBUM[song] for song in songs} & {ALBUM[song] for song in holdout_ids}


def test_held_out_entity_takes_all_its_pairs(dealt: RelationHoldout) -> None:
    """Whichever end it is, and those with a name that training does not know judge nothing."""
    songs, holdout_ids = sides_of(dealt, "song")
    artists = list_known_names(dealt, "artist")
    assert find_relation(dealt.training, "artists").pairs == [(s, ARTIST[s]) for s in SONGS if s in songs]
    holdout_pairs = [(s, ARTIST[s]) for s in SONGS if s in holdout_ids and ARTIST[s] in artists]
    assert find_relation(dealt.holdout, "artists").pairs == holdout_pairs
    for relations in (dealt.training, dealt.holdout):
        turned = [(song, artist) for artist, song in find_relation(relations, "songs").pairs]
        assert turned == find_relation(relations, "artists").pairs
    assert 0 < len(holdout_pairs) < len(holdout_ids), "some of them have an artist of their own"


def test_held_out_entities_query_candidates_of_their_side(dealt: RelationHoldout) -> None:
    _, songs = sides_of(dealt, "song")
    _, notes = sides_of(dealt, "note")
    asking = {name: find_relation(dealt.holdout, name) for name in ("artists", "songs", "about")}
    assert (set(asking["artists"].query.ids), asking["artists"].target) == (songs, "artist")
    assert (asking["songs"].query, set(asking["songs"].target.ids)) == ("artist", songs)
    assert (set(asking["about"].query.ids), set(asking["about"].target.ids)) == (notes, songs)


def test_pairs_of_two_featured_kinds_have_both_ends_on_one_side(dealt: RelationHoldout) -> None:
    (songs, other_songs), (notes, other_notes) = sides_of(dealt, "song"), sides_of(dealt, "note")
    training_pairs, holdout_pairs = (
        set(find_relation(relations, "about").pairs) for relations in (dealt.training, dealt.holdout)
    )
    assert training_pairs == {(n, s) for n, s in ABOUT if n in notes and s in songs}
    assert holdout_pairs == {(n, s) for n, s in ABOUT if n in other_notes and s in other_songs}
    assert holdout_pairs
    assert len(training_pairs) + len(holdout_pairs) < len(set(ABOUT))


def test_held_out_entities_of_one_kind_query_training_entities(dealt: RelationHoldout) -> None:
    """Whichever of the two a list says first."""
    songs, holdout_ids = sides_of(dealt, "song")
    training_relation, held_out_relation = find_relation(dealt.training, "like"), find_relation(dealt.holdout, "like")
    assert held_out_relation.query is next(kind for kind in dealt.holdout_kinds if kind.name == "song")
    assert held_out_relation.target is training_relation.query is training_relation.target
    assert training_relation.pairs == [(a, b) for a, b in LIKE if a in songs and b in songs]
    first = {(a, b) for a, b in LIKE if a in holdout_ids and b in songs}
    turned = {(b, a) for a, b in LIKE if b in holdout_ids and a in songs}
    assert set(held_out_relation.pairs) == first | turned
    assert first - turned
    assert turned - first


def test_pair_without_data_is_on_one_side_with_its_inverse(dealt: RelationHoldout) -> None:
    """The inverse relation must not reveal a held-out pair."""
    training_pairs, holdout_pairs = (
        {name: {frozenset(pair) for pair in find_relation(relations, name).pairs} for name in FREE}
        for relations in (dealt.training, dealt.holdout)
    )
    assert not set().union(*training_pairs.values()) & set().union(*holdout_pairs.values())
    assert training_pairs["genres"] == training_pairs["players"]
    assert holdout_pairs["genres"] == holdout_pairs["players"]
    for name, pairs in (("near", NEAR), ("genres", GENRES)):
        unordered = set(map(frozenset, pairs))
        assert 0.1 < 1 - len(training_pairs[name]) / len(unordered) < 0.4
        assert holdout_pairs[name] <= unordered - training_pairs[name]


def test_pairs_with_untrained_entities_are_not_evaluated(dealt: RelationHoldout) -> None:
    artists, holdout_pairs = list_known_names(dealt, "artist"), find_relation(dealt.holdout, "near").pairs
    unknown = {b for _, b in NEAR} - artists
    assert unknown, "the only pair of some was held out"
    assert {a for pair in holdout_pairs for a in pair} <= artists
    training_pairs = set(find_relation(dealt.training, "near").pairs)
    assert set(holdout_pairs) == {pair for pair in NEAR if pair not in training_pairs and not unknown & set(pair)}


@pytest.mark.parametrize(("name", "of"), [("voices", ARTIST), ("moods", MOOD)])
def test_entities_that_share_a_name_stay_together(dealt: RelationHoldout, name: str, of: dict[str, str]) -> None:
    training_relation, held_out_relation = find_relation(dealt.training, name), find_relation(dealt.holdout, name)
    for relation in (training_relation, held_out_relation):
        same_name = [[of[a] == of[b] for b in relation.target.ids] for a in relation.query.ids]
        assert (relation.pairs.toarray() > 0).tolist() == same_name
    songs, holdout_ids = sides_of(dealt, "song")
    assert (set(held_out_relation.query.ids), set(held_out_relation.target.ids)) == (holdout_ids, songs)


def test_epoch_samples_pairs_of_frequent_names(dealt: RelationHoldout) -> None:
    """An artist has fewer songs than an epoch visits, a mood twice as many."""
    per_thing = {name: find_relation(dealt.training, name).n_pairs / 60 for name in ("voices", "moods")}
    assert per_thing["voices"] < MAX_PARTNERS < per_thing["moods"]
    assert find_relation(dealt.training, "voices").weight == 2
    assert find_relation(dealt.training, "moods").weight == pytest.approx(2 * MAX_PARTNERS / per_thing["moods"])


def test_zero_share_holds_out_nothing(world: World) -> None:
    dealt = world.dealt(share=0)
    assert (dealt.holdout, dealt.holdout_kinds) == ([], [])
    assert sides_of(dealt, "song")[0] == set(SONGS)
    for name, pairs in (("like", LIKE), ("about", ABOUT), ("near", NEAR), ("genres", GENRES), ("players", PLAYERS)):
        assert find_relation(dealt.training, name).pairs == pairs


def test_given_sides_are_kept(world: World) -> None:
    numbers = np.arange(80)
    even, odd = numbers[::2], numbers[1::2]
    sides = {"song": Split(even, odd, odd[:0]), "note": Split(even[:20], odd[:20], odd[:0])}
    songs, holdout_ids = sides_of(world.dealt(sides=sides), "song")
    assert (songs, holdout_ids) == (set(SONGS[::2]), set(SONGS[1::2]))


def test_groups_of_the_metadata_table_stay_together(tmp_path: Path) -> None:
    (tmp_path / "covers").mkdir()
    names = [f"{i:02}.png" for i in range(24)]
    for name in names:
        Image.new("L", (2, 2)).save(tmp_path / "covers" / name)
    lines = [f"{name},artist {i % 5},album {i // 3}" for i, name in enumerate(names)]
    (tmp_path / "covers" / "metadata.csv").write_text("\n".join(["file_name,artist,group", *lines]) + "\n")
    world = world_of(
        tmp_path,
        '[kinds.cover]\ndata = "covers"\n[relations.by]\nquery = "cover"\ntarget = "artist"\nnames = "artist"\n',
    )
    for seed in range(4):
        dealt = world.dealt(seed=seed)
        training_ids, holdout_ids = sides_of(dealt, "cover")
        assert (len(training_ids), len(holdout_ids), find_relation(dealt.holdout, "by").n_pairs) == (18, 6, 6)
        assert not {int(name[:2]) // 3 for name in training_ids} & {int(name[:2]) // 3 for name in holdout_ids}


def test_pair_in_another_spelling_is_the_same_pair(tmp_path: Path) -> None:
    """A space knows names in one spelling: what is held out must not be learned in another."""
    numbers = [(i, j) for i in range(8) for j in range(8)]
    write_pairs(tmp_path / "genres.tsv", [(f"Beyonc\u00e9  {i}", f"genre {j}") for i, j in numbers])
    write_pairs(tmp_path / "players.tsv", [(f"genre {j}", f"Beyonce\u0301 {i}") for i, j in numbers])
    dealt = world_of(tmp_path, "[relations.genres]" + DECLARATION.split("[relations.genres]")[1]).dealt()
    for relations in (dealt.training, dealt.holdout):
        genres, players = (set(find_relation(relations, name).pairs) for name in ("genres", "players"))
        assert genres == {(artist, genre) for genre, artist in players}


def test_invalid_pairs_without_data_are_listed(tmp_path: Path) -> None:
    text = '[kinds.song]\ndata = "songs.jsonl"\n[kinds.note]\ndata = "notes.jsonl"\n'
    text += '[relations.about]\nquery = "note"\ntarget = "song"\npairs = "about.tsv"\n'
    for name, ids in (("songs", ["s1", "cafe\u0301"]), ("notes", ["n1"])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps({"id": i, "text": i}) for i in ids) + "\n")
    write_pairs(tmp_path / "about.tsv", [("n1", "s1"), ("n1", "nowhere"), ("nothing", "s1"), ("n1", "caf\u00e9")])
    rejects = Rejects()
    assert world_of(tmp_path, text, rejects).data.pairs == {"about": [("n1", "s1"), ("n1", "cafe\u0301")]}
    why = "pair of an entity without data"
    assert [(reason, row_id) for _, reason, row_id in rejects.listed] == [(why, "nowhere"), (why, "nothing")]


def test_nested_tables_are_toml() -> None:
    text = _format_tables({"kinds": {"a b": {"data": "x", "size": 3}}})
    assert text == '\n[kinds."a b"]\ndata = "x"\nsize = 3\n'
