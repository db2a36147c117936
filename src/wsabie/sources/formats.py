"""Formats of pictures by the names that Pillow gives them."""

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM", "AVIF")
"""What is read (JPEG includes the multi-picture files of phones: their first picture). Whoever opens a picture names
these, so that no file can reach Pillow's interpreters of other formats."""
