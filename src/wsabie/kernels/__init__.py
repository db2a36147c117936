"""The only room with numba. Leaf functions first, each the size of a screen; `*reference.py` are the specification."""
