"""What of a prompt its reader's chat template says, in tokens."""

from __future__ import annotations

import pytest

from rag_repro.lm.local import LocalReader
from rag_repro.lm.prompts import Codec
from rag_repro.schema import Generate, Kept, Prefix, Prompt, Read, Reply
from tests.lm import templates, tiny

# Its words are those of templates, too, and are the prompt's own all the same.
SAID = "[1] The system of the user.\n\nAnswer, assistant: <|user|> is in [INST] Rome?"


@pytest.mark.parametrize("said", [SAID, "is it?", "\n\nor", "is it?\n", "of"])
@pytest.mark.parametrize("shape", templates.SHAPES)
def test_a_word_is_the_prompts_own_with_the_templates_blanks_around_it(shape: str, said: str):
    codec = Codec(templates.tokenizer(shape))
    made = codec.encode(Prompt.from_segments(said, chat=True))
    hidden = {i for first, last in made.template for i in range(first, last)}
    assert "".join(p for i, p in enumerate(made.pieces) if i not in hidden).split() == said.split()


@pytest.mark.parametrize("shape", templates.SHAPES)
def test_all_but_the_prompts_own_words_is_the_templates(shape: str):
    codec = Codec(templates.tokenizer(shape))
    made = codec.encode(
        Prompt.from_segments(Prefix("Some exemplars.\n\n"), SAID, Reply("So it"), chat=True)
    )
    hidden = {i for first, last in made.template for i in range(first, last)}
    own = [piece for i, piece in enumerate(made.pieces) if i not in hidden]
    assert "".join(own).split() == f"Some exemplars. {SAID}So it".split()
    assert all(last > first for first, last in made.template)
    assert sorted(made.template) == list(made.template)


def test_without_a_chat_it_is_the_opening_token_alone():
    codec = Codec(tiny.tokenizer())
    assert codec.encode(Prompt.from_segments(SAID)).template == ()
    opened = tiny.tokenizer()
    opened.add_bos_token = True
    from tokenizers.processors import TemplateProcessing

    opened._tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    assert Codec(opened).encode(Prompt.from_segments(SAID)).template == ((0, 1),)


def test_a_reader_says_it_of_what_it_writes_and_reads():
    loaded = tiny.loaded()
    reader = LocalReader(loaded)
    prompt = Prompt.from_segments(SAID, chat=True)
    told = reader.codec.encode(prompt).template
    [made] = reader.generate([Generate(prompt, max_new_tokens=3, trace=True)])
    [read] = reader.read([Read(prompt, "It is.", layers=(-1,))])
    assert made.trace.template == read.trace.template == told
    longer = Prompt.from_segments(SAID, Kept(made, 2), chat=True)
    [further] = reader.generate([Generate(longer, max_new_tokens=2, trace=True)])
    assert further.trace.template == told
