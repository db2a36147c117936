"""Code of ours beside libraries that do the same: `python -m benchmarks.libraries`."""
