"""The shared space: tables of points and the similarity between them. Nothing here trains."""
