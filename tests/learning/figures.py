"""SVG texts of curves, confusion matrices and sheets of samples, without any library. Pure functions."""
import base64
import html
import math
import struct
import zlib

MOST_BYTES = 60_000    # of a figure, so that it can lie beside the sources
STYLE = ('<style>text{font:11px sans-serif;fill:#555}.line{fill:none;stroke:#1f77b4;stroke-width:1.5}'
         '.axis{stroke:#999;stroke-width:1}</style>')


def document(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
            f'{STYLE}<rect width="100%" height="100%" fill="#fff"/>' + "".join(parts) + "</svg>\n")


def text(x, y, content, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(str(content))}</text>'


def ticks(low, high, count=5):
    """Round numbers from `low` to `high`."""
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= count)
    first = math.ceil(low / step - 1e-9)
    return [(first + i) * step for i in range(int((high - first * step) / step + 1e-9) + 1)]


def curve(points, x_label, y_label, log=False):
    """A line through `points` (x, y); `log`: y by its logarithm, which asks for positive numbers."""
    width, height, left, right, top, bottom = 480, 280, 52, 14, 14, 40
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(ys), max(ys)
    if not log:
        low, high = (low, high) if high > low else (low - 1, high + 1)
        marks = ticks(low, high)
    else:
        low, high = math.log10(low), math.log10(high)
        low, high = (low, high) if high > low else (low - 1, high + 1)
        exponents = range(math.floor(low), math.ceil(high) + 1)
        marks = [m * 10.0 ** e for e in exponents for m in (1, 2, 5) if low <= math.log10(m * 10.0 ** e) <= high]
    x_low, x_high = min(0, min(xs)), max(max(xs), 1)

    def place(x, y):
        at = math.log10(y) if log else y
        return (left + (x - x_low) / (x_high - x_low) * (width - left - right),
                height - bottom - (at - low) / (high - low) * (height - top - bottom))

    parts = []
    for mark in marks:
        _, y = place(0, mark)
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eee"/>')
        parts.append(text(left - 5, y + 4, f"{mark:g}", "end"))
    for mark in ticks(x_low, x_high):
        parts.append(text(place(mark, ys[0])[0], height - bottom + 15, f"{mark:g}"))
    parts.append(f'<line class="axis" x1="{left}" x2="{width - right}" y1="{height - bottom}" y2="{height - bottom}"/>')
    line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in points)
    parts.append(f'<polyline class="line" points="{line}"/>')
    x, y = place(*points[-1])
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1f77b4"/>')
    parts.append(text(x - 4, y + (16 if y < height / 2 else -8), f"{points[-1][1]:.4g}", "end"))
    parts.append(text((left + width) / 2, height - 6, x_label))
    parts.append(text(0, 0, y_label, more=f'transform="translate(12 {(height - bottom) / 2}) rotate(-90)"'))
    return document(width, height, parts)


def confusion(classes, counts):
    """`counts`: (class, what it was taken for, how many)."""
    cell, left, top = 34, 90, 78
    rows = {}
    for row, _, count in counts:
        rows[row] = rows.get(row, 0) + count
    size = len(classes) * cell
    parts = []
    for i, name in enumerate(classes):
        middle = (i + 0.5) * cell
        parts.append(text(left - 6, top + middle + 4, name, "end"))
        parts.append(text(0, 0, name, "start", f'transform="translate({left + middle + 4} {top - 6}) rotate(-50)"'))
    for row, column, count in counts:
        share = count / rows[row]
        x, y = left + column * cell, top + row * cell
        shade = round(255 * (1 - math.sqrt(share)))
        parts.append(f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="rgb({shade},{(shade + 510) // 3},255)"/>')
        parts.append(text(x + cell / 2, y + cell / 2 + 4, count))
    parts.append(f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" class="axis"/>')
    return document(left + size + 30, top + size + 8, parts)


def decode_png(data):
    """(width, height, channels, bytes) of a PNG of 8 bits, grey or RGB, that is not interlaced."""
    width, height, depth, kind, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    if depth != 8 or kind not in (0, 2) or interlaced:
        raise ValueError("a PNG of 8 bits, grey or RGB, was expected")
    channels, at, packed = (1, 3)[kind // 2], 8, b""
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        if name == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw, stride = zlib.decompress(packed), width * channels
    above, pixels = bytearray(stride), bytearray()
    for y in range(height):
        rule, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            a = line[x - channels] if x >= channels else 0
            b, c = above[x], above[x - channels] if x >= channels else 0
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, nearest)[rule]) & 255
        pixels += line
        above = line
    return width, height, channels, bytes(pixels)


def encode_png(width, rows, channels):
    """`rows` of pixels in 16 steps of brightness, which samples can do with."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    if channels == 1:
        lines = [bytes((line[x] >> 4) << 4 | (line[x + 1] >> 4 if x + 1 < width else 0) for x in range(0, width, 2))
                 for line in rows]
    else:
        lines = [bytes(value & 0xF0 for value in line) for line in rows]
    header = struct.pack(">IIBBBBB", width, len(rows), 4 if channels == 1 else 8, 0 if channels == 1 else 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + line for line in lines), 9)) + chunk(b"IEND", b""))


def samples(sheet, side, gap=2):
    """As many rows of a sheet, a PNG of samples of `side` pixels, as MOST_BYTES allow."""
    width, height, channels, pixels = decode_png(sheet)
    rows = [pixels[y * width * channels:(y + 1) * width * channels] for y in range(height)]
    for count in range((height + gap) // (side + gap), 0, -1):
        rows = rows[:count * (side + gap) - gap]
        data = base64.b64encode(encode_png(width, rows, channels)).decode()
        svg = document(2 * width, 2 * len(rows), [
            f'<image width="{2 * width}" height="{2 * len(rows)}" style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{data}"/>'])
        if len(svg) <= MOST_BYTES:
            return svg
    raise ValueError(f"one row of samples takes more than {MOST_BYTES} bytes")
