"""Builds tiny GGUF models whose next token depends on the last one alone, as a table says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

END = "</s>"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


class Vocabulary:
    """The 256 bytes, a start, an end, and tokens of more than one character."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.tokens = ["<unk>", "<s>", END, *BYTES, *words]
        self._numbers = {token: number for number, token in enumerate(self.tokens)}

    def number(self, token: str) -> int:
        """The number of a token, or of the byte that a character is."""
        return self._numbers.get(token) or self._numbers[f"<0x{ord(token):02X}>"]

    def random_scores(self, seed: int, favourites: str = "", favour: float = 0) -> Scores:
        """Random scores of each next token (column) behind each token (row).

        Args:
            seed: of the random numbers.
            favourites: characters that score higher than others, as the end does.
            favour: by how much.
        """
        size = len(self.tokens)
        scores = np.random.default_rng(seed).standard_normal((size, size))
        scores[:, [self.number(char) for char in favourites] + [self.number(END)]] += favour
        scores[:, [0, 1]] -= 9
        return scores

    def follow(self, scores: Scores, tokens: Sequence[str]) -> None:
        """Make each of the tokens, none of which comes twice, the likeliest behind the last."""
        numbers = [1, *map(self.number, tokens)]
        assert len({*numbers}) == len(numbers)
        for last, following in pairwise(numbers):
            scores[last, following] = scores.max() + 1


Scores = npt.NDArray[np.float64]


def build(path: Path, vocabulary: Vocabulary, scores: Scores, *, has_end: bool = True) -> Path:
    """Write the model: one layer that adds nothing, between one-hot embeddings and the table.

    Without an end, nothing in its vocabulary ends an answer.
    """
    width = -(-len(vocabulary.tokens) // 32) * 32
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    (_add_vocabulary if has_end else _add_endless_vocabulary)(writer, vocabulary)
    size = len(vocabulary.tokens)
    shapes = {f"attn_{name}": (width, width) for name in ("q", "k", "v", "output")}
    shapes |= {"ffn_gate": (32, width), "ffn_up": (32, width), "ffn_down": (width, 32)}
    tensors = {f"blk.0.{name}.weight": np.zeros(shape) for name, shape in shapes.items()}
    tensors |= {f"blk.0.{name}_norm.weight": np.ones(width) for name in ("attn", "ffn")}
    tensors |= {"output_norm.weight": np.ones(width), "token_embd.weight": np.eye(size, width)}
    tensors["output.weight"] = np.pad(scores.T, ((0, 0), (0, width - size)))
    for name, values in tensors.items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: gguf.GGUFWriter, vocabulary: Vocabulary) -> None:
    words = len(vocabulary.tokens) - 3 - len(BYTES)
    control, byte, word = (
        gguf.TokenType.CONTROL,
        gguf.TokenType.BYTE,
        gguf.TokenType.USER_DEFINED,
    )
    types = [gguf.TokenType.UNKNOWN, control, control, *[byte] * len(BYTES), *[word] * words]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_scores([0.0] * len(types))
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)


def _add_endless_vocabulary(writer: gguf.GGUFWriter, vocabulary: Vocabulary) -> None:
    # Of the tokenisers that llama.cpp knows, this one gives no token a special meaning.
    writer.add_tokenizer_model("rwkv")
    texts = [f"\\x{token[3:5].lower()}" if token in BYTES else token for token in vocabulary.tokens]
    texts[vocabulary.number(END)] = "no end"
    writer.add_token_list(texts)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(texts))
