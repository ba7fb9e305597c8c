"""Requests to a language model, one after the other: its prompt at once, then token after token (llama.cpp)."""

import ctypes

import llama_cpp
import numpy as np

from castmates.workloads.jobs.loop import Unusable
from castmates.workloads.jobs.tracing import Tracer
from castmates.workloads.llamajobs.asked import Asked
from castmates.workloads.phases import phase

ERRORS_FROM = 4  # of llama.cpp's levels of log lines, 5 goes on with the last one


class LlamaJob:
    """A model with one request at a time.

    The tokens of a request are drawn, also those that follow its prompt, as llama-bench does: a choice of the model's
    own could be another one where a processor rounds otherwise, and all that comes after it.
    """

    def __init__(self, asked: Asked) -> None:
        llama_cpp.llama_log_set(_quiet, ctypes.c_void_p(0))
        self._asked, self._rng = asked, np.random.default_rng(asked.seed)
        how = llama_cpp.llama_model_default_params()
        how.n_gpu_layers = 0
        model = llama_cpp.llama_model_load_from_file(str(asked.model).encode(), how)
        if model is None:
            raise Unusable(f"llama.cpp cannot read the model {asked.model}: it must be a whole GGUF file.")
        self.model = model
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = context.n_batch = context.n_ubatch = asked.prompt + asked.generate
        context.n_threads = context.n_threads_batch = asked.threads
        context.no_perf = False  # it reads the clock twice in each call
        made = llama_cpp.llama_init_from_model(model, context)
        if made is None:
            raise Unusable(f"llama.cpp has no room for requests of {asked.prompt} + {asked.generate} tokens.")
        self.context = made
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        self.parameters: int = llama_cpp.llama_model_n_params(model)
        self._first = self._drawn()
        self._next = self._first

    def step(self, number: int) -> float:
        """Answer one request: the mean amount of the scores that follow its last token."""
        tokens = self._next
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), False)
        with phase("prefill", step=number):
            scores = self._read(tokens[: self._asked.prompt])
        with phase("decode", step=number):
            for token in range(self._asked.prompt, len(tokens)):
                scores = self._read(tokens[token : token + 1])
        self._next = self._drawn()
        return float(np.abs(scores).mean())

    def again(self) -> float:
        """Answer the first request again."""
        self._next = self._first
        return self.step(0)

    def tracer(self) -> Tracer:
        """No profiler of ours can trace llama.cpp."""
        raise Unusable("The operations of llama.cpp cannot be traced: leave out the key 'profile' for this lead.")

    def facts(self) -> dict[str, object]:
        """What was loaded, and what decides how llama.cpp computes here."""
        return {
            "name": _text(self.model, b"general.name"),
            "layers": llama_cpp.llama_model_n_layer(self.model),
            "bytes": llama_cpp.llama_model_size(self.model),
            "llama_cpp": llama_cpp.__version__,
            "capability": llama_cpp.llama_print_system_info().decode().strip(),
        }

    def _drawn(self) -> np.ndarray:
        # The first token that is generated follows from the prompt; each other one is read for the one after it.
        return self._rng.integers(0, self._vocabulary, self._asked.prompt + self._asked.generate - 1, np.int32)

    def _read(self, tokens: np.ndarray) -> np.ndarray:
        """Have the model read these tokens, and give its scores for the one after them."""
        own = (llama_cpp.llama_token * len(tokens))(*tokens.tolist())
        if status := llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(own, len(tokens))):
            raise RuntimeError(f"llama_decode ended with status {status}.")
        scores = llama_cpp.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(scores, shape=(self._vocabulary,))


@llama_cpp.llama_log_callback
def _quiet(level: int, text: bytes, _: ctypes.c_void_p) -> None:
    if level == ERRORS_FROM:
        print(text.decode(errors="replace"), end="", flush=True)


def _text(model: object, key: bytes) -> str:
    room = ctypes.create_string_buffer(200)
    length = llama_cpp.llama_model_meta_val_str(model, key, room, len(room))
    return room.value.decode(errors="replace") if length >= 0 else ""
