"""What chapters' sources say of themselves, read without running them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_repro.book_folders import BookFolders
from rag_repro.publish import contents
from rag_repro.publish.notebook_pairs import PairError
from rag_repro.study import papers
from tests.publish.conftest import HEADER

ROOT = Path(__file__).resolve().parents[2]


def put(places, name, *cells):
    (places.notebooks / f"{name}.py").write_text(HEADER + "\n" + "\n\n".join(cells) + "\n")


def test_claims_lead_to_the_first_chapter_that_decides_them(places):
    put(places, "11_a", "# %%\nA = ('c01', 'c02')\nCLAIMS = [f'x.{n}' for n in A]\nshow(CLAIMS)")
    put(places, "12_b", "# %%\nCLAIMS = [f'x.c{i:02}' for i in range(2, 4)]\nshow(CLAIMS)")
    assert contents.claims(places) == {"x.c01": "11_a", "x.c02": "11_a", "x.c03": "12_b"}


def test_nothing_of_a_cell_is_run_but_its_plain_assignments(places, tmp_path):
    mark = tmp_path / "ran"
    put(places, "11_a", f"# %%\nopen({str(mark)!r}, 'w')\nD = desk.table()\nCLAIMS = ['x.c01']")
    assert contents.claims(places) == {"x.c01": "11_a"}
    assert not mark.exists()


def test_claims_that_cannot_be_read_so_are_refused_with_the_chapter(places):
    put(places, "11_a", "# %%\nCLAIMS = sorted(FOUND)\n")
    with pytest.raises(PairError, match="11_a: CLAIMS is not made of literals"):
        contents.claims(places)


def test_deviations_and_titles_are_those_of_the_sources(places):
    put(
        places,
        "11_a",
        "# %% [markdown]\n# # Recall of it\n#\n# Words.",
        '# %% [markdown] tags=["deviations"]\n# ## Deviations\n#\n# | a |\n# | - |\n# | b |',
    )
    assert contents.deviations(places) == {"11_a": "| a |\n| - |\n| b |"}
    assert contents.titles(places)["11_a"] == "Recall of it"


def test_every_claim_of_the_book_is_decided_in_a_chapter():
    decided = contents.claims(BookFolders(ROOT))
    known = {claim.id for name in papers.names() for claim in papers.load(name).claims}
    assert set(decided) == known
