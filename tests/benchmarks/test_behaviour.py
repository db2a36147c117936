"""Behaviour that renames must keep: renamed keys are no difference, and a slower ratio is one."""

from benchmarks.behaviour import compare, compare_speed


def test_a_listed_rename_is_no_difference() -> None:
    assert list(compare({"figures": {"now": 1}}, {"figures": {"metrics": 1}})) == []
    assert list(compare({"figures": {"now": 1}}, {"figures": {"level": 1}})) == [
        "/figures/now: is gone",
        "/figures/level: is new",
    ]


def test_speed_may_fall_by_a_twentieth() -> None:
    earlier = {"search": 0.8, "training": 0.8}
    assert list(compare_speed(earlier, {"search": 0.77, "training": 0.75})) == [
        "/speed/training: 0.750 is below 0.95 of 0.800"
    ]
