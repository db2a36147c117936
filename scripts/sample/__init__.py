"""Parts of the builder of the bundled sample collection; the entry is `scripts/build_sample.py`."""
