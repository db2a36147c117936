"""RAW photos for tests: DNG files with a preview in the first directory and a Bayer pattern in another."""

import io
import struct

from PIL import Image


def make_dng(preview: Image.Image | None, orientation: int = 1, xmp: bytes = b"    ") -> bytes:
    """Return a DNG file of 64 x 48 pixels; without a preview its first directory holds the sensor's data."""
    jpeg = io.BytesIO()
    if preview is not None:
        preview.save(jpeg, "JPEG", quality=95)
    date = b"2024:05:01 12:00:00\0"
    sensor = struct.pack("<H", 1000) * (64 * 48)
    blocks: list[bytes] = []
    end = 4096  # directories lie before

    def put(content: bytes) -> int:
        nonlocal end
        offset, end = end, end + len(content) + len(content) % 2
        blocks.append(content + b"\0" * (len(content) % 2))
        return offset

    def directory(entries: dict[int, tuple[int, int, int | bytes]]) -> bytes:
        rows = []
        for tag, (kind, count, value) in sorted(entries.items()):
            if isinstance(value, int):
                value = struct.pack("<H2x" if kind == 3 else "<I", value)
            elif len(value) > 4:
                value = struct.pack("<I", put(value))
            rows.append(struct.pack("<HHI", tag, kind, count) + value.ljust(4, b"\0"))
        return struct.pack("<H", len(rows)) + b"".join(rows) + bytes(4)

    common = {
        271: (2, 5, b"Test\0"), 272: (2, 5, b"Cam1\0"), 274: (3, 1, orientation), 306: (2, 20, date),
        700: (1, len(xmp), xmp), 34665: (4, 1, 2048), 50706: (1, 4, b"\1\4\0\0"), 50708: (2, 5, b"Cam1\0"),
        50721: (10, 9, struct.pack("<18i", *(v for i in range(9) for v in (int(i % 4 == 0), 1)))), 50778: (3, 1, 21),
        50728: (5, 3, struct.pack("<6I", 1, 1, 1, 1, 1, 1)),
    }  # fmt: skip
    image = {
        254: (4, 1, 0), 256: (4, 1, 64), 257: (4, 1, 48), 258: (3, 1, 16), 259: (3, 1, 1), 262: (3, 1, 32803),
        273: (4, 1, put(sensor)), 277: (3, 1, 1), 278: (4, 1, 48), 279: (4, 1, len(sensor)),
        33421: (3, 2, struct.pack("<2H", 2, 2)), 33422: (1, 4, b"\0\1\1\2"),
    }  # fmt: skip
    if preview is None:
        first, second = directory(common | image), b""
    else:
        content = jpeg.getvalue()
        first = directory(common | {
            254: (4, 1, 1), 256: (4, 1, preview.width), 257: (4, 1, preview.height),
            258: (3, 3, struct.pack("<3H", 8, 8, 8)),
            259: (3, 1, 7), 262: (3, 1, 6), 273: (4, 1, put(content)), 277: (3, 1, 3), 278: (4, 1, preview.height),
            279: (4, 1, len(content)), 330: (4, 1, 3072),
        })  # fmt: skip
        second = directory(image)
    camera = directory({36867: (2, 20, date)})
    file = b"II*\0" + struct.pack("<I", 8) + first
    return file.ljust(2048, b"\0") + camera.ljust(1024, b"\0") + second.ljust(1024, b"\0") + b"".join(blocks)
