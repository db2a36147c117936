"""Readers: every source ends as a `FeatureTable` (features with labels) or as a stream of `Item`s."""
