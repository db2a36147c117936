"""Embedding spaces: tables of points and similarities, without training."""
