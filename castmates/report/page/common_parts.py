"""What every page holds: styles, scripts, and where its numbers come from."""

from markupsafe import Markup

from castmates.report.page.page import TEMPLATES


def common_parts() -> dict[str, Markup]:
    """Styles and scripts of every page."""
    names = ("report.css", "figures.css", "report.js", "figures.js")
    parts = {name: Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in names}
    return {
        "css": parts["report.css"] + parts["figures.css"],
        "script": parts["report.js"] + parts["figures.js"],
    }


def first_words(origin: str) -> str:
    """What a caption begins with: "" where all is measured."""
    return f"{origin[:1].upper()}{origin[1:]}. " if origin else ""
