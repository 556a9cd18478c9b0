"""Chat templates of the shapes that readers come with, in short, and tokenizers that have them."""

from __future__ import annotations

from transformers import PreTrainedTokenizerFast

from tests.lm import tiny

_TURNS = "{% for m in messages %}"
_SAYS = "{% endfor %}{% if add_generation_prompt %}"
_END = "{% endif %}"


def _shape(opening: str, before: str, after: str, reply: str) -> str:
    """A template, of what it says at its start, around a turn, and before the reply."""
    return f"{opening}{_TURNS}{{{{ {before} }}}}{{{{ {after} }}}}{_SAYS}{{{{ {reply} }}}}{_END}"


def _chatml(opening: str) -> str:
    before = "'<|im_start|>' + m['role'] + '\\n' + m['content']"
    return _shape(opening, before, "'<|im_end|>\\n'", "'<|im_start|>assistant\\n'")


_HEADER = "'<|start_header_id|>' + {} + '<|end_header_id|>\\n\\n'"
_DATED = (
    "{{ bos_token }}<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
    "2023\nToday Date: {{ strftime_now('%d %b %Y') }}\n\n<|eot_id|>"
)
_ROLE = "('model' if m['role'] == 'assistant' else m['role'])"

# name -> template, tokens of its own, whether words bring a mark for the space before them
SHAPES: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "llama-3": (
        _shape(
            _DATED,
            _HEADER.format("m['role']") + " + m['content'] | trim",
            "'<|eot_id|>'",
            _HEADER.format("'assistant'"),
        ),
        ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        False,
    ),
    "qwen": (
        _chatml("<|im_start|>system\nYou are Qwen, a helpful assistant.<|im_end|>\n"),
        (),
        False,
    ),
    "qwen-3": (
        _shape(
            "",
            "'<|im_start|>' + m['role'] + '\\n' + m['content']",
            "'<|im_end|>\\n'",
            "'<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n'",
        ),
        ("<think>", "</think>"),
        False,
    ),
    "smollm": (
        _chatml(
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n"
        ),
        (),
        False,
    ),
    "chatml-bos": (_chatml("{{ bos_token }}<|im_start|>system\nBe brief.<|im_end|>\n"), (), False),
    "gemma": (
        _shape(
            "{{ bos_token }}",
            f"'<start_of_turn>' + {_ROLE} + '\\n' + m['content'] | trim",
            "'<end_of_turn>\\n'",
            "'<start_of_turn>model\\n'",
        ),
        ("<start_of_turn>", "<end_of_turn>"),
        True,
    ),
    "mistral": (
        _shape("{{ bos_token }}", "'[INST] ' + m['content']", "'[/INST]'", "''"),
        ("[INST]", "[/INST]"),
        True,
    ),
    # No token of its own: its marks are words like any other.
    "llama-2": (
        _shape(
            "{{ bos_token }}",
            "'[INST] <<SYS>>\\nYou are honest.\\n<</SYS>>\\n\\n' + m['content'] | trim",
            "' [/INST]'",
            "''",
        ),
        (),
        True,
    ),
    "phi": (
        _shape(
            "",
            "'<|' + m['role'] + '|>\\n' + m['content']",
            "'<|end|>\\n'",
            "'<|assistant|>\\n'",
        ),
        ("<|user|>", "<|assistant|>", "<|end|>"),
        True,
    ),
    "zephyr": (
        _shape(
            "<|system|>\nYou are a friendly assistant.</s>\n",
            "'<|' + m['role'] + '|>\\n' + m['content']",
            "'</s>\\n'",
            "'<|assistant|>\\n'",
        ),
        (),
        False,
    ),
    "alpaca": (
        _shape(
            "Below is an instruction.\n\n",
            "'### ' + m['role'] + ':\\n' + m['content']",
            "'\\n\\n'",
            "'### assistant:\\n'",
        ),
        (),
        False,
    ),
}


def tokenizer(shape: str) -> PreTrainedTokenizerFast:
    """A small vocabulary with a template of that shape."""
    template, own, metaspace = SHAPES[shape]
    made = tiny.tokenizer(template, metaspace)
    made.add_special_tokens({"additional_special_tokens": list(own)})
    return made
