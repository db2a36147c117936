"""Numba kernels. `tests/reference` holds their specification in plain Python."""
