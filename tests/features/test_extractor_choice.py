"""Default extractors: the packaged network if installed, otherwise visual words."""

import logging
from pathlib import Path

import pytest

from wsabie.features import extractor_choice
from wsabie.features.extractor_choice import choose_picture_features
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.extractors.composite_extractors import KernelPcaExtractor
from wsabie.io.records import ItemList


@pytest.fixture(autouse=True)
def network(monkeypatch):
    """A machine with the network."""
    monkeypatch.delenv("WSABIE_FEATURES")
    monkeypatch.setattr(extractor_choice, "find_spec", lambda name: name)


def test_network_is_the_default_for_photos(caplog):
    with caplog.at_level(logging.INFO, "wsabie"):
        assert create_extractor("auto", seed=3).name == create_extractor().name == "lite0"
    assert "features: lite0" in caplog.text


@pytest.mark.parametrize(("kind", "names"), [("regions", "lite0,colour"), ("boxes", "lite0,colour"), (None, "lite0")])
def test_regions_add_colours_to_the_network(kind, names):
    assert choose_picture_features(ItemList(Path(), [], kind=kind), {"seed"}) == names


@pytest.mark.parametrize("missing", ["wsabie_lite0", "onnxruntime"])
def test_visual_words_are_the_fallback_with_advice(missing, monkeypatch, caplog):
    monkeypatch.setattr(extractor_choice, "find_spec", lambda name: None if name == missing else name)
    with caplog.at_level(logging.INFO, "wsabie"):
        assert create_extractor().name == "visual-words"
    assert "pip install 'wsabie[photos]'" in caplog.text


def test_visual_word_options_select_visual_words():
    assert create_extractor("auto", n_words=9, crop=0.5).name == "visual-words"
    mapped = create_extractor(n_components=4)
    assert isinstance(mapped, KernelPcaExtractor)
    assert mapped.inner.name == "visual-words"


def test_environment_variable_names_extractors(monkeypatch):
    monkeypatch.setenv("WSABIE_FEATURES", "colour,hog")
    assert create_extractor("auto").name == "colour,hog"


def test_other_modalities_have_their_defaults():
    assert create_extractor(modality="sounds").name == "mfcc,sai"
    assert create_extractor(modality="documents").name == "words"
