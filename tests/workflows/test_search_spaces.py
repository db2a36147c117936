"""Search spaces: fixed parameters, tried values, and refused changes."""

import re
from pathlib import Path
from typing import Any

import pytest

from wsabie.core.errors import InputError
from wsabie.io.space_declaration import KindDeclaration, RelationDeclaration, SpaceDeclaration
from wsabie.models.base.parameter_defaults import (
    TrainingShape,
    default_learning_rate,
    default_ridge_rate,
    has_ridge_start,
)
from wsabie.models.estimator_specs import build_estimator, list_parameters
from wsabie.workflows.spaces.space_training import build_space_search_space
from wsabie.workflows.tune.search_spaces import KINDS, ChoiceParameter, RangeParameter, build_search_space

SHAPE = TrainingShape(1000, 4000, 50)


def are_equal(a: Any, b: Any) -> bool:
    return bool(a == (b if b is None or isinstance(b, str) else pytest.approx(b, rel=1e-3)))


def test_every_parameter_of_a_space_is_one_of_the_estimator() -> None:
    for name, kind in KINDS.items():
        assert kind.name == name
        assert set(kind.space) <= set(list_parameters(name))
        assert not set(kind.space) & kind.untuned


def test_defaults_have_a_point_in_the_space() -> None:
    search_space = build_search_space()
    start = search_space.locate_defaults(SHAPE)
    assert start is not None
    assert start["learning_rate"] == start["epochs"] == 1.0
    assert (start["dim"], start["max_sampled"], start["scaling"]) == (100, "auto", "auto")
    assert (start["init"], start["max_norm"]) == ("ridge", None)
    parameters = search_space.resolve_point(start, SHAPE)
    assert parameters["learning_rate"] == pytest.approx(default_ridge_rate(SHAPE), rel=1e-3)
    defaults, resolved = search_space.resolve({}, SHAPE), search_space.resolve(parameters, SHAPE)
    assert {name: value for name, value in resolved.items() if not are_equal(value, defaults[name])} == {}


@pytest.mark.parametrize("shape", [SHAPE, TrainingShape(10_000, 10_000, 500), TrainingShape(200_000, 400_000, 1000)])
@pytest.mark.parametrize("parameters", [{}, {"pair_weighting": "pairs"}, {"loss": "auc"}])
@pytest.mark.parametrize("name", [name for name in KINDS if name != "one-vs-rest"])
def test_auto_is_resolved_as_by_the_model(name: str, parameters: dict[str, Any], shape: TrainingShape) -> None:
    """Or multiples would be of other numbers than those that the first trial is trained with."""
    model = build_estimator(name, parameters)
    auto = KINDS[name].auto(shape, {**KINDS[name].defaults(), **parameters})
    for parameter in auto:
        part, _, last = parameter.rpartition("__")
        owner = getattr(model, part or "embedding", model)
        if parameter == "init":
            assert auto[parameter] == ("ridge" if has_ridge_start(owner._list_parameters()) else "random")
        elif getattr(owner, last) == "auto":
            assert auto[parameter] == pytest.approx(getattr(owner._resolve_settings(shape), last)), parameter


def test_defaults_outside_the_space_have_no_point() -> None:
    assert build_search_space({"dim": [10, 20]}).locate_defaults(SHAPE) is None
    assert build_search_space({"max_norm": {"low": 2, "high": 3}}).locate_defaults(SHAPE) is None


def test_multiples_follow_the_other_parameters() -> None:
    """The default rate depends on how pairs weigh, the first tables on the dimensions."""
    scales = {"low": 0.3, "high": 3.0, "log": True, "relative": True}
    search_space = build_search_space({"init": "random", "init_scale": scales})
    place = {"learning_rate": 2.0, "init_scale": 0.5, "dim": 100, "epochs": 0.5}
    for positives in ("mean", "pairs"):
        parameters = search_space.resolve_point({**place, "pair_weighting": positives}, SHAPE)
        assert parameters["learning_rate"] == pytest.approx(2 * default_learning_rate(SHAPE, positives), rel=1e-3)
        assert parameters["init_scale"] == 0.05
        assert isinstance(parameters["epochs"], int)


def test_changes_fix_select_and_extend_parameters() -> None:
    search_space = build_search_space(
        {"loss": "auc", "dim": [20, 40], "learning_rate": {"low": 0.01, "high": 0.1}, "patience": [3, "none"]}
    )
    assert search_space.fixed == {"loss": "auc"}
    assert search_space.space["dim"] == ChoiceParameter((20, 40))
    assert search_space.space["learning_rate"] == RangeParameter(0.01, 0.1, log=True)
    assert search_space.space["patience"] == ChoiceParameter((3, None))
    assert list(search_space.space)[:3] == ["learning_rate", "epochs", "dim"]
    assert search_space.resolve_point({"learning_rate": 0.05}, SHAPE) == {"loss": "auc", "learning_rate": 0.05}
    per_table = build_search_space({"learning_rate": {"V": 0.1, "W": 0.2}})
    assert per_table.fixed == {"learning_rate": {"V": 0.1, "W": 0.2}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimm": 5}, "there is no parameter dimm to tune; did you mean dim?"),
        ({"qqqqqq": 5}, "the parameters are dim, epochs"),
        ({"seed": [1, 2]}, "seed is an option of its own"),
        ({"dim": []}, "the list of values of dim is empty"),
        ({"dim": [50, -1]}, "dim is -1"),
        ({"dim": {"low": 0.2, "high": 50}}, "dim is 0"),
        ({"loss": ["warp", "wrap"]}, "loss is 'wrap'"),
        ({"margin": {"low": 1}}, "the space of margin is {'low': 1}; write {low = ..., high"),
        ({"margin": {"low": "a", "high": 2}}, "write {low"),
        ({"margin": {"low": 1, "high": float("inf")}}, "write {low"),
        ({"margin": {"low": 1, "high": 2, "relative": True}}, "write {low"),
        ({"margin": {"low": 1, "high": 2, "log": 1}}, "write {low"),
        ({"margin": {"low": 2, "high": 1}}, "runs from 2 to 1"),
        ({"margin": {"low": 0, "high": 1, "log": True}}, "is logarithmic from 0 on"),
        ({"similarity": {"low": 0, "high": 1}}, "similarity is 0"),
        ({"max_norm": -1}, "max_norm is -1"),
    ],
)
def test_invalid_changes_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        build_search_space(changes)


@pytest.mark.parametrize(
    ("ends", "expected_start"),
    [
        ([("track", "artist")], "ridge"),
        ([("artist", "track"), ("artist", "tag")], "ridge"),
        ([("track", "artist"), ("track", "track")], "random"),
        ([("artist", "tag")], "random"),
    ],
)
def test_start_of_a_space_is_tuned_where_its_default_is_ridge(ends: list[tuple[str, str]], expected_start: str) -> None:
    kinds = {"track": KindDeclaration("track", Path("tracks")), **{k: KindDeclaration(k) for k in ("artist", "tag")}}
    relations = [RelationDeclaration(f"{a}-{b}", a, b, Path("pairs"), None, 1.0) for a, b in ends]
    search = build_space_search_space(SpaceDeclaration(Path("a.toml"), kinds, relations, {}), {})
    assert ("init" in search.space) == (expected_start == "ridge")
    values = search.model.auto(TrainingShape(9000, 9000, 2**31 - 1), search.model.defaults())
    assert (values["init"], values["learning_rate"]) == (expected_start, 0.01 if expected_start == "ridge" else 0.03)
