"""Result groups of a search: best scores, no item twice, related labels in turns."""

import numpy as np
import pytest

from wsabie import Devise, WordVectors, Wsabie
from wsabie.core.errors import InputError
from wsabie.models.embedding_set import EmbeddingSet
from wsabie.search.query_labels import QueryMatcher
from wsabie.workflows.augmented_search import AugmentedSearch

NAMES = [f"label {y}" for y in range(6)]


class Links:
    """Related labels by name."""

    def __init__(self, **links: list[str]) -> None:
        self.links = links

    def related(self, label: str, k: int = 10) -> list[tuple[str, float, str]]:
        return [(name, 1 / (1 + n), f"because of {label}") for n, name in enumerate(self.links.get(label[-1], []))]


@pytest.fixture(params=["dot", "euclidean", "cosine"])
def model(request):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 8)).astype(np.float32), rng.integers(0, 6, 60)
    return Wsabie(dim=5, epochs=5, threads=1, similarity=request.param, label_bias=True, scaling=None).fit(
        X, [[NAMES[i]] for i in y], label_names=NAMES
    )


@pytest.fixture
def item_rows(model):
    X = np.random.default_rng(1).random((40, 8)).astype(np.float32)
    return X, EmbeddingSet([f"{i}" for i in range(40)], model.transform(X))


class AnyConceptMatcher(QueryMatcher):
    """A query that means two labels."""

    def match(self, query):
        return super().match(NAMES[0])._replace(labels=[NAMES[0], NAMES[1]])


def test_best_items_are_those_of_all_scores(model, item_rows) -> None:
    X, items = item_rows
    scores = model.scores(X)
    plain = AugmentedSearch(model, items).find(NAMES[2], k=7).groups[0]
    order = np.argsort(-scores[:, 2], kind="stable")[:7]
    assert [int(match.id) for match in plain.matches] == order.tolist()
    assert np.allclose([match.score for match in plain.matches], scores[order, 2], atol=1e-5)
    two = AugmentedSearch(model, items, queries=AnyConceptMatcher(NAMES)).find("?", k=40).groups[0]
    best = scores[:, :2].max(1)
    assert [int(match.id) for match in two.matches] == np.argsort(-best, kind="stable").tolist()
    assert [match.label for match in two.matches] == [NAMES[scores[int(f.id), :2].argmax()] for f in two.matches]


def test_item_is_shown_once(model, item_rows) -> None:
    search = AugmentedSearch(model, item_rows[1], related=[Links(**{"0": NAMES[1:]})])
    groups = search.find(NAMES[0], k=9).groups
    ids = [match.id for group in groups for match in group.matches]
    assert len(ids) == len(set(ids)) == 40
    assert [len(group.matches) for group in groups] == [9, 9, 9, 9, 4]
    assert groups[1][:3] == ([NAMES[1]], "because of label 0", 1.0)


def test_only_the_best_of_a_group_is_shown(model, item_rows) -> None:
    X, items = item_rows
    kin = ["same"] * 30 + items.ids[30:]
    group_matches = AugmentedSearch(model, items, groups=kin).find(NAMES[3], k=40).groups[0].matches
    assert len(group_matches) == 11
    first = next(row for row in np.argsort(-model.scores(X)[:, 3], kind="stable") if row < 30)
    assert [match.id for match in group_matches if int(match.id) < 30] == [str(first)]


def test_related_labels_leave_room_for_others(model, item_rows) -> None:
    X, items = item_rows
    order = np.argsort(-model.scores(X)[:, 3], kind="stable")
    kin = np.array(items.ids)
    kin[order[:30]] = "same"
    nearest = AugmentedSearch(model, items, groups=kin.tolist()).find(NAMES[3], k=3).groups[0].matches
    assert [int(match.id) for match in nearest] == order[[0, 30, 31]].tolist()


def test_query_matchers_take_turns(model, item_rows) -> None:
    links = [Links(**{"0": [NAMES[4], "no label", NAMES[5]]}), Links(**{"0": [NAMES[0], NAMES[1]], "1": [NAMES[2]]})]
    search = AugmentedSearch(model, item_rows[1], related=links)
    assert [group.labels[0][-1] for group in search.find(NAMES[0], k=2).groups] == list("0415")
    assert len(search.find(NAMES[0], k=2, n_related=1).groups) == 2
    search = AugmentedSearch(model, item_rows[1], related=links, queries=AnyConceptMatcher(NAMES))
    assert [group.labels[0][-1] for group in search.find("?", k=2).groups[1:]] == list("425")


def test_concepts_are_searched_before_their_labels(model, item_rows) -> None:
    class Concept(AnyConceptMatcher):
        def match(self, query):
            return super().match(query)._replace(concept="9")

    links = [Links(**{"9": [NAMES[5]], "0": [NAMES[4]]}), Links(**{"1": [NAMES[3]]})]
    search = AugmentedSearch(model, item_rows[1], related=links, queries=Concept(NAMES))
    assert [group.labels[0][-1] for group in search.find("?", k=2).groups[1:]] == list("53")


def test_empty_collection_is_refused(model) -> None:
    with pytest.raises(InputError, match="nothing to search in"):
        AugmentedSearch(model, EmbeddingSet([], np.empty((0, 5), np.float32)))
    with pytest.raises(InputError, match="k"):
        AugmentedSearch(model, EmbeddingSet(["a"], np.zeros((1, 5), np.float32))).find(NAMES[0], k=0)


def test_labels_without_a_word_vector_are_dropped_or_refused() -> None:
    words = WordVectors(["sea", "sky"], np.eye(2, dtype=np.float32))
    X = np.repeat(np.eye(2, dtype=np.float32), 10, axis=0)
    model = Devise(words, labels=["qux"], epochs=5, threads=1, scaling=None).fit(X, ["sea"] * 10 + ["sky"] * 10)
    items = EmbeddingSet(["a", "b"], model.transform(np.eye(2, dtype=np.float32)))

    class Waters(QueryMatcher):
        def match(self, query):
            return super().match("sea")._replace(labels=["sea", "qux"][query == "x" :], sentence="two")

    links = Links(a=["qux", "sky"])
    answer = AugmentedSearch(model, items, queries=Waters(["sea"]), related=[links]).find("water", k=1)
    assert [group.labels for group in answer.groups] == [["sea"], ["sky"]]
    assert answer.query_labels.sentence == "two (1 of them without a word vector left out)"
    with pytest.raises(InputError, match="no word vector for qux; ask for another label"):
        AugmentedSearch(model, items, queries=Waters(["sea"])).find("x")
    with pytest.raises(InputError, match="no word vector for qux"):
        AugmentedSearch(model, items).find("Qux")
