"""Write what the Model Garden jobs read: images, scenes, tokens, sentences and click logs, all made up.

    python -m castmates.workloads.tfmodels.records --into FOLDER KIND [options]

Runs in the `tfmodels` environment. Everything is drawn as whole numbers from a fixed seed, so that the same environment
writes the same bytes everywhere.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from castmates.workloads.tfmodels import runtime

SEED = 20
SHARDS = 8  # the click logs' reader wants at least so many files
CLASSES = 100  # the smallest number of classes that a job has
CLS, SEP, MASK, FIRST_WORD = 2, 3, 4, 5  # token numbers; 0 is padding


def main() -> int:
    """Write the data set that the command line names."""
    given = _arguments()
    runtime.prepare(1, onednn=True, device="cpu")
    given.into.mkdir(parents=True, exist_ok=True)
    try:
        _write(given)
    except ModuleNotFoundError as error:
        print(runtime.where_to_run(error), file=sys.stderr)
        return 2
    return 0


def _write(given: argparse.Namespace) -> None:
    import numpy as np

    rng = np.random.default_rng(SEED)
    if given.kind == "clicks":
        _write_lines(given.into, _told(_clicks(rng, given), given.count))
        return
    import tensorflow as tf

    examples = {"images": _images, "scenes": _scenes, "tokens": _tokens, "sentences": _sentences}[given.kind]
    _write_records(tf, given.into, _told(examples(tf, rng, given), given.count))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m castmates.workloads.tfmodels.records", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="the folder to write")
    kinds = parser.add_subparsers(dest="kind", required=True)
    options: dict[str, dict[str, int]] = {
        "images": {"count": 512, "side": 128},
        "scenes": {"count": 128, "side": 160},
        "tokens": {"count": 4096, "sequence": 64, "masked": 8, "vocabulary": 8_000},
        "sentences": {"count": 8192, "words": 14, "vocabulary": 8_000},
        "clicks": {"count": 16_384, "rows": 200_000, "criteo": 0},  # criteo 1: Criteo's rows, at most --rows
    }
    for kind, defaults in options.items():
        one = kinds.add_parser(kind)
        for name, default in defaults.items():
            one.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def _images(tf: Any, rng: Any, given: argparse.Namespace) -> Iterator[Any]:
    """JPEG images of sides that vary by a quarter, with a class, as the ImageNet records have them."""
    for _ in range(given.count):
        height, width = (int(side) for side in rng.integers(3 * given.side // 4, 5 * given.side // 4, 2))
        label = int(rng.integers(0, CLASSES))
        encoded = tf.io.encode_jpeg(_picture(rng, height, width), quality=90).numpy()
        yield _example(tf, {"image/encoded": [encoded], "image/class/label": [label]})


def _scenes(tf: Any, rng: Any, given: argparse.Namespace) -> Iterator[Any]:
    """JPEG images with the class of each pixel as a PNG, as the records of PASCAL VOC have them."""
    for _ in range(given.count):
        height, width = 3 * given.side // 4, given.side
        classes = _blocks(rng.integers(0, 21, (8, 8), dtype="uint8"), height, width)[..., None]
        features = {
            "image/encoded": [tf.io.encode_jpeg(_picture(rng, height, width), quality=90).numpy()],
            "image/height": [height],
            "image/width": [width],
            "image/segmentation/class/encoded": [tf.io.encode_png(classes).numpy()],
        }
        yield _example(tf, features)


def _tokens(tf: Any, rng: Any, given: argparse.Namespace) -> Iterator[Any]:
    """Pairs of segments with masked words, as BERT's pre-training reads them; one in ten is shorter."""
    for _ in range(given.count):
        length = given.sequence if rng.integers(0, 10) else int(rng.integers(given.sequence // 2, given.sequence))
        middle, end = length // 2, length - 1
        words = _frequent_first(rng, given.vocabulary - FIRST_WORD, length) + FIRST_WORD
        words[0], words[middle], words[end] = CLS, SEP, SEP
        positions = sorted(set(range(1, end)) - {middle})
        hidden = sorted(rng.choice(positions, given.masked, replace=False).tolist())
        originals = words[hidden].tolist()
        words[hidden] = MASK
        rest = [0] * (given.sequence - length)
        features = {
            "input_ids": [*words.tolist(), *rest],
            "input_mask": [1] * length + rest,
            "segment_ids": [0] * (middle + 1) + [1] * (end - middle) + rest,
            "masked_lm_positions": hidden,
            "masked_lm_ids": originals,
            "masked_lm_weights": [1.0] * given.masked,
            "next_sentence_labels": [int(rng.integers(0, 2))],
        }
        yield _example(tf, features)


def _sentences(tf: Any, rng: Any, given: argparse.Namespace) -> Iterator[Any]:
    """Sentences of a made-up language and their translation word by word, and the vocabulary of both."""
    one, other = _language(rng, given.vocabulary), _language(rng, given.vocabulary)
    pairs = []
    for _ in range(given.count):
        words = _frequent_first(rng, len(one), int(rng.integers(given.words // 2, given.words + 1)))
        pairs.append((" ".join(one[word] for word in words), " ".join(other[word] for word in words[::-1])))
    _write_vocabulary(given.into, given.vocabulary, pairs)
    for source, target in pairs:
        yield _example(tf, {"en": [source.encode()], "de": [target.encode()]})


def _clicks(rng: Any, given: argparse.Namespace) -> Iterator[str]:
    """Lines of Criteo's click logs: clicked or not, 13 counts as logarithms, 26 categories."""
    rows = [given.rows] * 26
    if given.criteo:
        from official.recommendation.ranking.configs import config

        rows = [min(given.rows, table) for table in config.vocab_sizes]
    for _ in range(given.count):
        counts = rng.integers(0, 80_000, 13)
        words = [str(int(rng.integers(0, 2))), *(f"{count // 10_000}.{count % 10_000:04}" for count in counts)]
        yield "\t".join([*words, *map(str, rng.integers(0, rows))])


def _picture(rng: Any, height: int, width: int) -> Any:
    """Large and small blocks of colour and some noise: about as many bytes a pixel as a photograph."""
    sizes = ((4, 120), (16, 60), (64, 40), (max(height, width), 20))
    return sum(_blocks(rng.integers(0, most, (cells, cells, 3), dtype="uint8"), height, width) for cells, most in sizes)


def _blocks(cells: Any, height: int, width: int) -> Any:
    """Enlarge a small picture without any arithmetic but whole numbers'."""
    import numpy as np

    rows = np.arange(height) * cells.shape[0] // height
    columns = np.arange(width) * cells.shape[1] // width
    return cells[rows[:, None], columns[None, :]]


def _frequent_first(rng: Any, below: int, count: int) -> Any:
    """Draw numbers of which the small ones are frequent, as the words of a language are."""
    return rng.integers(0, below, count) * rng.integers(0, below, count) // below


def _language(rng: Any, words: int) -> list[str]:
    """Make up as many different words."""
    found: dict[str, None] = {}
    while len(found) < words:
        syllables = zip(rng.integers(0, 20, 4), rng.integers(0, 5, 4), strict=True)
        whole = "".join("bcdfghjklmnpqrstvwxz"[first] + "aeiou"[second] for first, second in syllables)
        found[whole[: 2 * int(rng.integers(1, 5))]] = None
    return list(found)


def _write_vocabulary(folder: Path, size: int, pairs: list[tuple[str, str]]) -> None:
    """Train the vocabulary with the words that the package's own script has for it."""
    from sentencepiece import SentencePieceTrainer

    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "text"
        text.write_text("\n".join(sentence for pair in pairs for sentence in pair), encoding="utf-8")
        SentencePieceTrainer.train(
            input=str(text),
            model_prefix=str(folder / "sentencepiece"),
            vocab_size=size,
            character_coverage=1.0,
            bos_id=-1,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            num_threads=1,
            minloglevel=2,
        )


def _example(tf: Any, features: dict[str, list[Any]]) -> bytes:
    def feature(values: list[Any]) -> Any:
        kinds: dict[type, Callable[[], Any]] = {
            bytes: lambda: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
            int: lambda: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
            float: lambda: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        }
        return kinds[type(values[0])]()

    whole = {name: feature(values) for name, values in features.items()}
    example = tf.train.Example(features=tf.train.Features(feature=whole))
    return bytes(example.SerializeToString(deterministic=True))


def _write_records(tf: Any, folder: Path, examples: Iterable[bytes]) -> None:
    files = [folder / f"part-{number}-of-{SHARDS}.tfrecord" for number in range(SHARDS)]
    writers = [tf.io.TFRecordWriter(str(file)) for file in files]
    for number, example in enumerate(examples):
        writers[number % SHARDS].write(example)
    for writer in writers:
        writer.close()


def _write_lines(folder: Path, lines: Iterable[str]) -> None:
    whole = list(lines)
    for number in range(SHARDS):
        file = folder / f"part-{number}-of-{SHARDS}.tsv"
        file.write_text("\n".join(whole[number::SHARDS]) + "\n", encoding="ascii")


def _told(examples: Iterable[Any], count: int) -> Iterator[Any]:
    """Pass examples on, and report now and then how far it is."""
    for number, example in enumerate(examples, start=1):
        if number % max(1, count // 4) == 0:
            print(f"{number} of {count} examples", file=sys.stderr, flush=True)
        yield example


if __name__ == "__main__":
    sys.exit(main())
