"""Write a language model of random weights for llama.cpp: Llama's layers, quantised as Q8_0, in one GGUF file.

    python -m castmates.workloads.llamajobs.weights --into FOLDER --layers 2 --width 256 --vocabulary 2048

Runs in the `llama` environment. Weights are whole numbers from a fixed seed, so that the same bytes are written
everywhere.
"""

import argparse
import sys
from pathlib import Path

SEED = 20
FILE = "model.gguf"
HEAD = 64  # width of a head of attention
BLOCK = 32  # weights that share a scale in Q8_0: two bytes of scale, then a byte each
SPREAD = 73.3  # about the standard deviation of whole numbers drawn evenly from -127 to 127


def main() -> int:
    """Write the model that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m castmates.workloads.llamajobs.weights", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="the folder to write")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--width", type=int, required=True, help=f"a multiple of {HEAD}")
    parser.add_argument("--vocabulary", type=int, required=True)
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    write(given.into / FILE, given.layers, given.width, given.vocabulary)
    return 0


def write(file: Path, layers: int, width: int, vocabulary: int) -> None:
    """Write it; the inner width of a layer is 8/3 of the width, as in Llama, in whole heads."""
    import gguf
    import numpy as np

    rng = np.random.default_rng(SEED)
    inner = -(-8 * width // (3 * HEAD)) * HEAD
    writer = gguf.GGUFWriter(file, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.LLAMA])
    writer.add_name(f"castmates {layers} x {width}, {vocabulary} tokens")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_block_count(layers)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(width // HEAD)
    writer.add_head_count_kv(width // HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_context_length(4096)
    writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model("no_vocab")  # requests are of token numbers

    def matrix(name: str, rows: int, columns: int) -> None:
        blocks = np.empty((rows, columns // BLOCK, BLOCK + 2), np.uint8)
        scale = np.array([1 / (SPREAD * columns**0.5)], np.float16)
        blocks[..., :2] = scale.view(np.uint8)
        blocks[..., 2:] = rng.integers(-127, 128, (rows, columns // BLOCK, BLOCK), np.int8).view(np.uint8)
        writer.add_tensor(f"{name}.weight", blocks.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))

    matrix("token_embd", vocabulary, width)
    for layer in range(layers):
        norm(f"blk.{layer}.attn_norm")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{part}", width, width)
        norm(f"blk.{layer}.ffn_norm")
        matrix(f"blk.{layer}.ffn_gate", inner, width)
        matrix(f"blk.{layer}.ffn_up", inner, width)
        matrix(f"blk.{layer}.ffn_down", width, inner)
    norm("output_norm")
    matrix("output", vocabulary, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    sys.exit(main())
