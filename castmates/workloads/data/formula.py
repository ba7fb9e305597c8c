"""Writes `formula.cnf`: random clauses of three over few variables, too many to be satisfied, for a SAT solver."""

from castmates.workloads.data.common import Numbers, arguments

RATIO = 5.2  # clauses for each variable; from about 4.3 on nearly every formula is contradictory


def main() -> None:
    """Write the file."""
    given = arguments("Writes a formula of a fixed seed.", variables=280)
    numbers, clauses = Numbers(220), int(RATIO * given.variables)
    with (given.folder / "formula.cnf").open("w", encoding="ascii", newline="\n") as file:
        file.write(f"p cnf {given.variables} {clauses}\n")
        for _ in range(clauses):
            chosen: list[int] = []
            while len(chosen) < 3:
                one = 1 + numbers.below(given.variables)
                if one not in map(abs, chosen):
                    chosen.append(one if numbers.below(2) else -one)
            file.write(" ".join(map(str, chosen)) + " 0\n")


if __name__ == "__main__":
    main()
