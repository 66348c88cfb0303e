"""The badges of the README, as SVG in docs/img/, from pyproject.toml:  python docs/badges.py

They say what the project itself can hold to. How its tests are on somebody's server is for that server to say.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
CHARACTER, PADDING, HEIGHT = 6.6, 8.0, 20  # of 11 pixel letters


def badge(name: str, value: str) -> str:
    """Return one badge: a name on grey, and its value on blue."""
    left, right = (len(text) * CHARACTER + 2 * PADDING for text in (name, value))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="{HEIGHT}" role="img">'
        f"<title>{name}: {value}</title>"
        f'<rect width="{left:.1f}" height="{HEIGHT}" fill="#444c56"/>'
        f'<rect x="{left:.1f}" width="{right:.1f}" height="{HEIGHT}" fill="#2362a5"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:.1f}" y="14">{name}</text><text x="{left + right / 2:.1f}" y="14">{value}</text>'
        "</g></svg>\n"
    )


def badges() -> dict[str, str]:
    """Return each badge by its name."""
    config = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project = config["project"]
    values = {
        "python": project["requires-python"].replace(">=", "") + " or newer",
        "licence": project["license"],
        "types": "mypy, strict" if config["tool"]["mypy"]["strict"] else "partial",
        "lines tested": f"at least {config['tool']['coverage']['report']['fail_under']} %",
    }
    return {name.replace(" ", "-"): badge(name, value) for name, value in values.items()}


if __name__ == "__main__":
    for name, svg in badges().items():
        (DOCS / "img" / f"badge-{name}.svg").write_text(svg, encoding="utf-8")
