"""Annotation and search of large collections by joint embeddings trained with the WARP ranking loss."""

__version__ = "0.1.0"
