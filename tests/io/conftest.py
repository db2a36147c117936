"""Small collections in every form, and the folder of shared data."""

import os
from pathlib import Path

import pytest
from PIL import Image

from wsabie.core.errors import InputError


@pytest.fixture
def data() -> Path:
    """The folder of shared test data."""
    folder = os.environ.get("WSABIE_TEST_DATA")
    if not folder:
        pytest.skip("WSABIE_TEST_DATA does not name the folder of shared test data")
    return Path(folder)


@pytest.fixture
def picture():
    """Writes a small picture, of a colour of its own."""

    def write(path: Path, shade: int = 0, **options) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), (shade, 90, 200)).save(path, **options)
        return path

    return write


@pytest.fixture(scope="session")
def result_or_sentence():
    """Calls a reader; the result, or None when it refuses its input in one sentence. Nothing else may be raised."""

    def call(read_file, *args, **options):
        message = ""
        try:
            return read_file(*args, **options)
        except InputError as error:
            message = str(error)
        assert message
        assert "\n" not in message
        return None

    return call
