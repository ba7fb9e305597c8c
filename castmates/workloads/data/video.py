"""Writes `video.yuv`: frames of planar YUV 4:2:0, a slow pan over a texture with things that move across it."""

from castmates.workloads.data.common import Numbers, arguments, texture

WIDTH, HEIGHT, SIDE = 640, 360, 512


def _plane(rows: list[bytes], width: int, height: int, left: int, top: int) -> list[bytearray]:
    """A window of a texture that goes on at its edges."""
    return [bytearray((rows[(top + y) % SIDE] * 3)[left % SIDE :][:width]) for y in range(height)]


def _put(plane: list[bytearray], thing: list[bytes], left: int, top: int) -> None:
    """Lay something over a plane, as far as it is inside."""
    left %= len(plane[0])
    for y, row in enumerate(thing):
        target = plane[(top + y) % len(plane)]
        shown = row[: len(target) - left]
        target[left : left + len(shown)] = shown


def main() -> None:
    """Write the file."""
    given = arguments("Writes a raw video of a fixed seed.", frames=60)
    numbers, ground = Numbers(525), texture(SIDE, 5251)
    other = texture(SIDE, 5252)
    movers = [(numbers.below(SIDE - 96), numbers.between(-9, 9), numbers.between(-6, 6)) for _ in range(6)]
    with (given.folder / "video.yuv").open("wb") as file:
        for frame in range(given.frames):
            luma = _plane(ground, WIDTH, HEIGHT, 2 * frame, frame)
            for number, (at, across, down) in enumerate(movers):
                thing = [row[at : at + 96] for row in other[at : at + 64]]
                _put(luma, thing, int(100 * number + across * frame), int(50 * number + down * frame))
            chroma = [_plane(other, WIDTH // 2, HEIGHT // 2, frame + 37 * way, 91 * way) for way in (0, 1)]
            file.writelines(row for plane in (luma, *chroma) for row in plane)


if __name__ == "__main__":
    main()
