"""Claims that cells show lead to their row of the ledger."""

from __future__ import annotations

import pytest

from rag_repro.publish.extension import in_html


@pytest.mark.parametrize(
    ("html", "made"),
    [
        ("<td>r2ag.c04, x</td>", '<td><a href="90#r2ag.c04">r2ag.c04</a>, x</td>'),
        ('<td id="drrag.s05">', '<td id="drrag.s05">'),
        ('<a href="x"><b>erm4.c01</b></a>', '<a href="x"><b>erm4.c01</b></a>'),
        ("<pre>dragin.c12</pre>", "<pre>dragin.c12</pre>"),
        ("<p>r2ag.c4, r2ag.c041, xr2ag.c04</p>", "<p>r2ag.c4, r2ag.c041, xr2ag.c04</p>"),
    ],
)
def test_a_claim_becomes_a_link_where_it_is_read(html, made):
    assert in_html(html, "90") == made
