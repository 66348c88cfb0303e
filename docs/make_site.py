"""The documentation as a site: docs/*.md become pages.

    python docs/make_site.py build/site

Everything it needs comes with superarm (Rich brings markdown-it and Pygments); the pages need no network.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parent.parent
# the pages a reader wants first; all others follow by name
ORDER = (
    *("index", "tutorial-researcher", "tutorial-practitioner", "tutorial-data-scientist"),
    *("concepts", "how-to", "rows", "most-click-nothing", "service", "logs", "evaluation", "sklearn"),
    *("experiments", "reproduce", "data"),
    *("research", "errata", "cli", "api"),
)

STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d8dbe0, #3a3f47); --soft: light-dark(#f5f6f8, #22262c);
  --link: light-dark(#2f4ab8, #9db2ff); --text: light-dark(#1d2025, #e4e6ea); }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.6 system-ui, sans-serif; color: var(--text);
  background: light-dark(#fff, #16191d); display: grid; grid-template-columns: 15rem minmax(0, 52rem) 14rem;
  gap: 2.5rem; padding: 0 1.5rem }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow: auto; padding: 1.6rem 0;
  font-size: .92rem }
nav ul { list-style: none; margin: 0; padding: 0 } nav li { margin: .35rem 0; line-height: 1.35 }
nav .here { font-weight: 600; color: var(--text) } nav strong { display: block; margin-bottom: .8rem }
main { padding: 1rem 0 5rem; min-width: 0 }
a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
h1 { font-size: 2rem; line-height: 1.2; margin: .8rem 0 1.2rem }
h2 { margin: 2.4rem 0 .8rem } h3 { margin-top: 2rem }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem;
  overflow-x: auto; font-size: .85rem; line-height: 1.5 }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .88em }
:not(pre) > code { background: var(--soft); border-radius: 4px; padding: .1em .3em }
pre code { font-size: inherit }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; font-size: .93rem }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .8rem .35rem 0; text-align: left;
  vertical-align: top }
img, svg { max-width: 100% }
@media (max-width: 70rem) { body { display: block } nav { position: static; max-height: none }
  nav.toc { display: none } }
"""


def titled(text: str, name: str) -> str:
    """A page's first heading, without its marks."""
    found = re.search(r"^# (.+)$", text, re.M)
    return re.sub(r"[*`_]", "", found[1]) if found else name


def slug(title: str) -> str:
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


def coloured(code: str, language: str, _: str) -> str:
    if language in ("", "console"):
        return html.escape(code)
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return html.escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def local(target: str, pages: set[str]) -> str:
    """Links to pages of this site become links to their HTML; all others stay."""
    found = re.fullmatch(r"(?:\.\./|docs/)*([\w-]+)\.md(#.*)?", target)
    if found and found[1] in pages:
        return f"{found[1]}.html{found[2] or ''}"
    return target


def render(text: str, pages: set[str]) -> tuple[str, list[tuple[str, str]]]:
    """A page's HTML, and its headings of the second level with their anchors."""
    markdown = MarkdownIt("commonmark", {"highlight": coloured, "html": True}).enable("table")
    tokens, contents = markdown.parse(text), list[tuple[str, str]]()

    def walk(parts: list[Token]) -> None:
        for place, token in enumerate(parts):
            if token.type == "heading_open":
                title = re.sub(r"[*`]", "", parts[place + 1].content)
                token.attrSet("id", slug(title))
                if token.tag == "h2":
                    contents.append((slug(title), title))
            if token.type == "link_open":
                token.attrSet("href", local(str(token.attrGet("href")), pages))
            walk(token.children or [])

    walk(tokens)
    return markdown.renderer.render(tokens, markdown.options, {}), contents


def build(target: Path) -> list[Path]:
    """Write the site; the pages it wrote."""
    sources = {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
    names = [*(n for n in ORDER if n in sources), *(n for n in sources if n not in ORDER)]
    texts = {name: sources[name].read_text(encoding="utf-8") for name in names}
    titles = {name: titled(texts[name], name) for name in names} | {"index": "Start"}
    light = HtmlFormatter(style="default").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    colours = f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\npre {{ background: var(--soft) }}"
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name in names:
        body, contents = render(texts[name], set(names))
        links = "".join(
            f'<li><a {"class=here " if other == name else ""}href="{local(other + ".md", set(names))}">'
            f"{html.escape(titles[other])}</a></li>"
            for other in names
        )
        toc = "".join(f'<li><a href="#{anchor}">{html.escape(title)}</a></li>' for anchor, title in contents)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(titles[name])}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}{colours}</style>'
            f"<nav><strong>superarm</strong><ul>{links}</ul></nav><main>{body}</main>"
            f'<nav class="toc"><ul>{toc}</ul></nav></html>'
        )
        written.append(target / local(name + ".md", set(names)))
        written[-1].write_text(page, encoding="utf-8")
    for picture in (ROOT / "docs").rglob("*"):
        if picture.suffix in (".png", ".svg", ".jpg"):
            copy = target / picture.relative_to(ROOT / "docs")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(picture.read_bytes())
    return written


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/make_site.py FOLDER")
    for path in build(Path(sys.argv[1])):
        print(path)
