"""Writes `program.c`: one large C file that needs no header, for a compiler; when run, it prints a checksum."""

from castmates.workloads.data.common import Numbers, arguments

HEAD = """\
typedef unsigned int word;
struct node { struct node *next; word key, weight; word table[16]; };
static struct node pool[64];
extern int printf(const char *, ...);
"""
TAIL = """\
int main(void)
{
    word sum = 1;
    for (word i = 0; i < 64; i++)
        pool[i].next = &pool[(i * 7 + 1) % 64], pool[i].key = i * 2654435761u;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        sum = sum * 31 + all[i](sum, i);
    printf("%08x\\n", sum);
    return 0;
}
"""
OPERATORS = ["+", "^", "*", "-", "|", "&"]


def expression(numbers: Numbers, depth: int) -> str:
    """A value made of the variables at hand."""
    if depth == 0 or numbers.below(5) == 0:
        return numbers.pick(["a", "b", "c", "i", "n->key", "n->table[i % 16]", f"{numbers.below(99991)}u"])
    left, right = expression(numbers, depth - 1), expression(numbers, depth - 1)
    if numbers.below(6) == 0:
        return f"(({left}) > ({right}) ? ({right}) >> {1 + numbers.below(7)} : ({left}) << {1 + numbers.below(5)})"
    return f"({left} {numbers.pick(OPERATORS)} {right})"


def statement(numbers: Numbers, number: int) -> str:
    """A loop, a choice, a walk along a list, or a call of an earlier function."""
    one, two = expression(numbers, 4), expression(numbers, 3)
    kind = numbers.below(5)
    if kind == 0:
        return f"    for (word i = 0; i < {4 + numbers.below(28)}; i++)\n        n->table[i % 16] += {one};\n"
    if kind == 1:
        cases = "".join(
            f"    case {case}: a {numbers.pick(OPERATORS)}= {expression(numbers, 2)}; break;\n"
            for case in range(3 + numbers.below(9))
        )
        return f"    switch (({two}) % 13) {{\n{cases}    default: c ^= {one};\n    }}\n"
    if kind == 2:
        bound = f"i < {2 + numbers.below(9)} && b % {3 + numbers.below(5)} != 0"
        return f"    for (i = 0; {bound}; i++) {{\n        b += {two};\n        n = n->next;\n    }}\n"
    if kind == 3 and number:
        return f"    if ({two} % 3 == 0)\n        c += f{numbers.below(number)}(a & 7, {one} & 15);\n"
    return f"    a = {one};\n    c ^= a + ({two});\n"


def function(numbers: Numbers, number: int) -> str:
    """One function; it calls only those before it, and seldom, so that the program ends soon."""
    body = "".join(statement(numbers, number if numbers.below(12) == 0 else 0) for _ in range(6 + numbers.below(8)))
    return (
        f"static word f{number}(word a, word b)\n{{\n    word c = a ^ b, i = b & 15;\n"
        f"    struct node *n = &pool[b % 64];\n{body}    n->weight = c;\n    return a + b + c + i;\n}}\n"
    )


def main() -> None:
    """Write the file."""
    given = arguments("Writes a C program of a fixed seed.", functions=20)
    numbers = Numbers(502)
    functions = [function(numbers, number) for number in range(given.functions)]
    names = ", ".join(f"f{number}" for number in range(given.functions))
    table = f"static word (*const all[])(word, word) = {{{names}}};\n"
    (given.folder / "program.c").write_text("\n".join([HEAD, *functions, table, TAIL]), encoding="ascii")


if __name__ == "__main__":
    main()
