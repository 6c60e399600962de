"""Every page is listed in the index of its language, and both glossaries have the same words."""
import re

import pytest
from conftest import ROOT


def page(language, name):
    return (ROOT / "docs" / language / name).read_text(encoding="utf-8")


def rows(text):
    """The cells of each row of the tables, headings and rules left out."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    return [row for row in cells if row[0] not in ("English", "فارسی", "item", "مورد")]


@pytest.mark.parametrize("language", ["en", "fa"])
def test_every_page_is_in_the_index_and_links_back_to_it(language):
    index = set(re.findall(r"\]\(([\w-]+\.md)\)", page(language, "contents.md")))
    pages = {path.name for path in (ROOT / "docs" / language).glob("*.md")} - {"contents.md"}
    assert index == pages
    for name in pages:
        assert "](contents.md)" in "".join(page(language, name).splitlines(True)[:4]), name


def test_both_glossaries_have_the_same_words_in_the_same_order():
    english = [(word, persian) for word, persian, _ in rows(page("en", "glossary.md"))]
    persian = [(word, persian) for persian, word, _ in rows(page("fa", "glossary.md"))]
    assert english == persian and len(english) > 50


def test_no_word_of_the_glossary_stands_twice():
    words = [word for word, _, _ in rows(page("en", "glossary.md"))]
    assert len(words) == len(set(words))


def test_what_the_old_documents_said_has_an_answer_in_both_languages():
    english, persian = rows(page("en", "origin.md")), rows(page("fa", "origin.md"))
    assert len(english) == len(persian) > 100
    for row in english + persian:
        assert len(row) == 2 and "](" in row[1], row
