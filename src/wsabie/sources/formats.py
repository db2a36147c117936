"""Formats of pictures by the names that Pillow gives them; what is said of a picture in any other."""

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM", "AVIF")
"""What is read (JPEG includes the multi-picture files of phones: their first picture). Whoever opens a picture names
these, so that no file can reach Pillow's interpreters of other formats."""

UNSUPPORTED = "unsupported picture format"
"""The reason by which pictures in other formats are counted."""

CONVERT = "convert it to JPEG or PNG"
