"""Tiny ONNX models, built from scratch: an embedder and a cross-encoder that know whole words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from ragmemory.embedders.calibration import PAIRS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
DIMENSIONS = 32
OPSET = 17
INT, FLOAT = TensorProto.INT64, TensorProto.FLOAT


def embedder_in(
    folder: Path,
    text: str,
    *,
    synonyms: Mapping[str, str] | None = None,
    longest: int = 64,
    seed: int = 0,
    pooling: str | None = "mean_tokens",
    prompts: Mapping[str, str] | None = None,
) -> Path:
    """A model that knows the words of `text`; a word and its synonym have the same vector."""
    vocabulary = _write_tokenizer(folder, text, longest)
    _save(
        folder,
        _matrix(vocabulary, synonyms or {}, seed),
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        ["input_ids", "attention_mask"],
        helper.make_tensor_value_info("last_hidden_state", FLOAT, ["batch", "tokens", DIMENSIONS]),
    )
    if pooling:
        _write_json(folder / "1_Pooling/config.json", {f"pooling_mode_{pooling}": True})
    if prompts:
        _write_json(folder / "config_sentence_transformers.json", {"prompts": dict(prompts)})
    return folder


def cross_encoder_in(folder: Path, text: str, *, synonyms: Mapping[str, str] | None = None) -> Path:
    """A model whose score is the dot product of both texts' sums of vectors."""
    vocabulary = _write_tokenizer(folder, text, 64)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("Mul", ["token_type_ids", "attention_mask"], ["is_second"]),
        helper.make_node("Sub", ["attention_mask", "is_second"], ["is_first"]),
    ]
    for part in ("first", "second"):
        nodes += [
            helper.make_node("Cast", [f"is_{part}"], [f"{part}_float"], to=FLOAT),
            helper.make_node("Unsqueeze", [f"{part}_float", "last"], [f"{part}_mask"]),
            helper.make_node("Mul", ["vectors", f"{part}_mask"], [f"{part}_vectors"]),
            helper.make_node("ReduceSum", [f"{part}_vectors", "tokens"], [part], keepdims=0),
        ]
    nodes += [
        helper.make_node("Mul", ["first", "second"], ["products"]),
        helper.make_node("ReduceSum", ["products", "tokens"], ["logits"], keepdims=1),
    ]
    _save(
        folder,
        _matrix(vocabulary, synonyms or {}, 0),
        nodes,
        ["input_ids", "attention_mask", "token_type_ids"],
        helper.make_tensor_value_info("logits", FLOAT, ["batch", 1]),
    )
    return folder


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


def _write_tokenizer(folder: Path, text: str, longest: int) -> dict[str, int]:
    known = " ".join([text, *(one for pair in PAIRS for one in pair)])
    words = dict.fromkeys([*SPECIAL, *_words(known)])
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", {"model_max_length": longest, "pad_token": "[PAD]"})
    _write_json(folder / "config.json", {"pad_token_id": 0})
    return vocabulary


def _matrix(vocabulary: Mapping[str, int], synonyms: Mapping[str, str], seed: int) -> NDArray[np.float32]:
    table = np.random.default_rng(seed).standard_normal((len(vocabulary), DIMENSIONS)).astype(np.float32)
    table[: len(SPECIAL)] = 0
    for word, other in synonyms.items():
        table[vocabulary[word]] = table[vocabulary[other]]
    return table


def _save(
    folder: Path, table: NDArray[np.float32], nodes: Sequence[Any], inputs: Sequence[str], output: Any
) -> None:
    arrays = {"table": table, "last": np.array([-1], np.int64), "tokens": np.array([1], np.int64)}
    used = {name for node in nodes for name in node.input}
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items() if name in used]
    given = [helper.make_tensor_value_info(name, INT, ["batch", "tokens"]) for name in inputs]
    graph = helper.make_graph(nodes, "tiny", given, [output], constants)
    opset = helper.make_opsetid("", OPSET)
    (folder / "onnx").mkdir(exist_ok=True)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "onnx/model.onnx")


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
