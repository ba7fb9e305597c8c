"""Writes `scene.pov`: spheres, boxes and a mirror floor under two lamps, for a ray tracer."""

from castmates.workloads.data.common import Numbers, arguments

HEAD = """\
#version 3.7;
global_settings { assumed_gamma 1 max_trace_level 6 }
camera { location <0, 5, -14> look_at <0, 1.5, 0> angle 50 }
light_source { <12, 20, -15> rgb <1, 0.95, 0.9> }
light_source { <-15, 9, -8> rgb 0.4 area_light <2, 0, 0>, <0, 2, 0>, 3, 3 }
plane { y, 0 pigment { checker rgb 0.9, rgb <0.2, 0.3, 0.4> } finish { reflection 0.25 } }
"""


def thing(numbers: Numbers) -> str:
    """A sphere or a box with a colour, a pattern and a gloss."""
    x, y, z = numbers.between(-7, 7), numbers.between(0.4, 5), numbers.between(-4, 10)
    size = numbers.between(0.2, 0.8)
    colour = ", ".join(f"{numbers.between(0.1, 1):.3f}" for _ in range(3))
    pigment = numbers.pick(
        [f"rgb <{colour}>", f"marble turbulence 0.8 scale 0.4 color_map {{ [0 rgb 1] [1 rgb <{colour}>] }}"]
    )
    finish = f"reflection {numbers.between(0, 0.5):.3f} phong 0.7"
    where = f"<{x:.3f}, {y:.3f}, {z:.3f}>"
    if numbers.below(3) == 0:
        far = f"<{x + size:.3f}, {y + size:.3f}, {z + size:.3f}>"
        return f"box {{ {where}, {far} pigment {{ {pigment} }} finish {{ {finish} }} }}\n"
    return f"sphere {{ {where}, {size:.3f} pigment {{ {pigment} }} finish {{ {finish} }} }}\n"


def main() -> None:
    """Write the file."""
    given = arguments("Writes a POV-Ray scene of a fixed seed.", things=220)
    numbers = Numbers(511)
    scene = HEAD + "".join(thing(numbers) for _ in range(given.things))
    (given.folder / "scene.pov").write_text(scene, encoding="ascii")


if __name__ == "__main__":
    main()
