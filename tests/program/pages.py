"""The pages of the documentation as the tests read them: files, headings, links and fenced blocks."""
import re
import textwrap
import unicodedata

from conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("examples/**/*.md")])

PERSIAN = [page for page in PAGES if page.parent.name == "fa" or page.name.endswith(".fa.md")]

FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- *(.*?) *-->")
TAG = re.compile(r"<[^>]+>")


class Block:
    """A fenced block: its language, its text, the line it begins at, and what the comments right before it say."""

    def __init__(self, page, text, found):
        self.page, self.language, self.text = page, found[2], textwrap.dedent(found[3])
        self.line = text[: found.start()].count("\n") + 1
        self.says = []
        for line in reversed(text[: found.start()].splitlines()):
            if line.strip() not in ("", '<div dir="ltr">'):
                comment = COMMENT.fullmatch(line.strip())
                if not comment:
                    break
                self.says.append(comment[1])

    def said(self, what):
        """What follows `what` in a comment before the block; None: no such comment."""
        return next((one[len(what):].strip(" :") for one in self.says if one.startswith(what)), None)

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def read(page):
    return page.read_text(encoding="utf-8")


def blocks(page, text=None):
    text = read(page) if text is None else text
    return [Block(page, text, found) for found in FENCE.finditer(text)]


def prose(page):
    """The page without its fenced blocks and comments; lines stay where they are."""
    blank = lambda found: "\n" * found[0].count("\n")  # noqa: E731
    return re.sub(r"<!--.*?-->", blank, FENCE.sub(blank, read(page)), flags=re.DOTALL)


def headings(page):
    """(level, text without markup) of each heading."""
    found = re.finditer(r"^(#{1,6}) +(.*?)#*$", prose(page), re.MULTILINE)
    return [(len(one[1]), re.sub(r"[`*]|\]\([^)]*\)|\[", "", TAG.sub("", one[2])).strip()) for one in found]


def slug(heading):
    """The anchor that GitHub gives a heading: lower case, letters, digits, hyphens and underscores, spaces as hyphens."""
    kept = (c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LNM" or unicodedata.category(c) == "Pc")
    return "".join(kept).replace(" ", "-")


def anchors(page):
    seen, all_of = {}, set(re.findall(r'<a (?:id|name)="([^"]+)"', read(page)))
    for _, text in headings(page):
        name = slug(text)
        all_of.add(name if name not in seen else f"{name}-{seen[name]}")
        seen[name] = seen.get(name, 0) + 1
    return all_of


def links(page):
    """(line, target) of every link and picture, those of HTML tags too; inline code is no link."""
    for number, line in enumerate(prose(page).splitlines(), 1):
        line = re.sub(r"(?<!\[)`[^`\n]*`(?!\])", "", line)
        for target in re.findall(r"\]\(<?([^)\s>]+)>?[^)]*\)|(?:href|src|srcset)=\"([^\"]+)\"", line):
            yield number, target[0] or target[1]
