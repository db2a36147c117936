"""Views stay inside the picture and depend on nothing but the id, the number and the seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.features.images.augmentation import CropView, compute_pixel_window, crop_view, generate_views


@given(st.text(max_size=8), st.integers(0, 5), st.floats(0.05, 1), st.integers(1, 300), st.integers(1, 300))
def test_views_lie_inside_the_picture(name, augment, crop, height, width):
    views = generate_views(name, augment, crop=crop)
    assert len(views) == augment + 1
    for view in views:
        window = compute_pixel_window(view, height, width)
        assert 0 <= window.left < window.right <= width
        assert 0 <= window.top < window.bottom <= height
        assert view.side <= crop


def test_more_views_do_not_change_earlier_ones():
    assert generate_views("a", 5)[:3] == generate_views("a", 2)
    assert generate_views("a", 2, seed=1) != generate_views("a", 2, seed=2)


def test_views_differ_in_place_size_and_side():
    views = [view for k in range(50) for view in generate_views(str(k), 1)[1:]]
    assert {view.flip for view in views} == {True, False}
    assert len({view.left for view in views}) == 50
    assert 0.8 <= min(view.side for view in views) < 0.85
    assert 0.95 < max(view.side for view in views) <= 1


def test_crop_takes_the_window():
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    np.testing.assert_array_equal(crop_view(pixels, CropView(0, 0, 1)), pixels)
    np.testing.assert_array_equal(crop_view(pixels, CropView(0, 0, 1, True)), pixels[:, ::-1])
    np.testing.assert_array_equal(crop_view(pixels, CropView(0.25, 0.25, 0.5)), pixels[1:3, 1:4])


@pytest.mark.parametrize("options", [{"augment": -1}, {"crop": 0}, {"crop": 1.1}])
def test_values_out_of_range_are_refused(options):
    with pytest.raises(InputError):
        generate_views("a", **options)
