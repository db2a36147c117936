"""Suggestions for misspelt names."""

from wsabie.vocabulary.name_suggestions import find_closest_names


def test_closest_prefers_the_nearest_spelling_and_ignores_case():
    names = ["dauphin", "Dolphin", "dolphins", "dog", "ship"]
    assert find_closest_names("dolfin", names) == ["Dolphin", "dolphins"]
    assert find_closest_names("DOLPHIN", names, n=1) == ["Dolphin"]
    assert find_closest_names("zebra", ["ship", "dog"]) == []
    assert find_closest_names("asdf", ["leaf", "sand"]) == []  # of four letters two by chance
    assert find_closest_names("犬", ["猫", "犬"]) == ["犬"]
