"""Writes `image.ppm`: a colour picture of soft shapes and noise, for image processing."""

from castmates.workloads.data.common import arguments, texture


def main() -> None:
    """Write the file."""
    given = arguments("Writes a picture of a fixed seed.", side=512)
    planes = [texture(given.side, seed) for seed in (5381, 5382, 5383)]
    with (given.folder / "image.ppm").open("wb") as file:
        file.write(f"P6\n{given.side} {given.side}\n255\n".encode())
        for rows in zip(*planes, strict=True):
            row = bytearray(3 * given.side)
            for colour, plane in enumerate(rows):
                row[colour::3] = plane
            file.write(row)


if __name__ == "__main__":
    main()
