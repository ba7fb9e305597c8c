"""Writes `hpccinf.txt`, what the HPC Challenge benchmark reads: one process, a small matrix."""

from castmates.workloads.data.common import arguments

LINES = [  # by the position of the line, the benchmark takes the values before the words
    "input of the HPC Challenge benchmark",
    "written by castmates",
    "HPL.out  file for results",
    "8  device for results",
    "1  sizes of the matrix: how many",
    "{side}  which",
    "1  block sizes: how many",
    "80  which",
    "0  mapping of processes: by rows",
    "1  process grids: how many",
    "1  rows",
    "1  columns",
    "16.0  threshold of the residual",
    "1  panel factorisations: how many",
    "2  which: right-looking",
    "1  stopping criteria of the recursion: how many",
    "4  which",
    "1  panels in the recursion: how many",
    "2  which",
    "1  recursive factorisations: how many",
    "1  which: Crout",
    "1  broadcasts: how many",
    "1  which",
    "1  depths of look-ahead: how many",
    "1  which",
    "2  swapping: mixed",
    "64  threshold of swapping",
    "0  L1 transposed",
    "0  U transposed",
    "1  equilibration",
    "8  alignment in doubles",
    "a separator",
    "0  further sizes for PTRANS: how many",
    "0  which",
    "0  further block sizes for PTRANS: how many",
    "0  which",
]


def main() -> None:
    """Write the file."""
    given = arguments("Writes the input of hpcc.", side=600)
    text = "\n".join(LINES).format(side=given.side)
    (given.folder / "hpccinf.txt").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
