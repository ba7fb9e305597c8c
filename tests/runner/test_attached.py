"""A program that is not changed for us: its steps are followed from outside, and nothing of ours can break it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from castmates.analysis.operations.per_trace import BOUND
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.pipeline.followed_trial import Wish, try_steps
from castmates.traces.operations import WAITS, read_trace
from castmates.workloads import environments, heartbeat
from castmates.workloads.heartbeat import State
from castmates.workloads.tfmodels.profile_page import FOLDER, VARIABLE, Page
from tests.waiting import wait_for

# A framework with what the hook needs of Keras and TensorFlow: `train_function` is made once, `fit` calls it.
KERAS = """
class Model:
    train_function = None
    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = lambda batch: batch
        return self.train_function
    def fit(self, x, epochs=1, initial_epoch=0):
        self.make_train_function()
        for epoch in range(initial_epoch, epochs):
            for batch in x:
                self.train_function(batch)
        return "history"
    def train_on_batch(self, batch):
        self.make_train_function()
        return self.train_function(batch)
__version__ = "3.fake"
"""
TENSORFLOW = """
import pathlib
class _Function:
    def __init__(self, inner): self.python_function = inner
    def __call__(self, *words): return self.python_function(*words)
function, executing_eagerly = _Function, lambda: True
class errors:
    class OpError(Exception): pass
class profiler:
    class experimental:
        def start(folder): pathlib.Path(folder, "begun").touch()
        def stop(): pass
        class Trace:
            def __init__(self, name, **_): pass
            def __enter__(self): return self
            def __exit__(self, *_): pass
class config:
    class threading:
        get_intra_op_parallelism_threads = get_inter_op_parallelism_threads = staticmethod(lambda: 0)
__version__ = "2.fake"
"""
# The same of PyTorch, and of a JAX whose results are something that nobody has thought of.
TORCH = """
class optim:
    class Optimizer:
        def __init__(self): pass
        def step(self): pass
class utils:
    class data:
        class DataLoader:
            def __iter__(self): return iter(())
class compiler:
    is_compiling = staticmethod(lambda: False)
__version__ = "2.fake"
"""
JAX = """
class jit:
    def __init__(self, function): self.function = function
    def lower(self): pass
    def __call__(self, *words): return self.function(*words)
pmap = jit
class stages:
    class Compiled:
        def __call__(self): pass
class tree_util:
    def tree_leaves(found): raise TypeError("odd")
__version__ = "0.fake"
"""


@pytest.fixture
def there(tmp_path):
    """A folder with the framework, and with the channels that a launch gives."""
    (tmp_path / "keras.py").write_text(KERAS)
    (tmp_path / "tensorflow.py").write_text(TENSORFLOW)
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "jax.py").write_text(JAX)
    heartbeat.create(tmp_path / "beats")
    Page.create(tmp_path / "page").close()
    return tmp_path


def environment(there: Path, step_function: str = "", **more: str) -> dict[str, str]:
    plain = os.environ | {"PYTHONPATH": str(there), heartbeat.VARIABLE: str(there / "beats")}
    plain |= {VARIABLE: str(there / "page"), FOLDER: str(there / "traces")} | more
    return plain | environments.variables(plain, step_function, there / "cache")


def ran(there: Path, script: str, step_function: str = "", **more: str) -> tuple[str, str, int]:
    """Output, errors and heartbeats of a script that ends."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment(there, step_function, **more), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with heartbeat.Reader(there / "beats") as reader:
        return done.stdout, done.stderr, reader.head


def test_each_step_of_the_first_model_is_a_heartbeat_and_a_loop_that_ends_says_so(there):
    script = (
        "import tensorflow, keras\nfirst, second = keras.Model(), keras.Model()\n"
        "print([first.train_on_batch(n) + second.train_on_batch(n) for n in range(20)][-1])"
    )
    output, errors, beats = ran(there, script)
    assert output == "38\n"
    assert beats == 20 - 6
    assert errors == (
        "castmates: the program has ended after 20 training steps; a launch needs one that goes on, as with "
        "more epochs.\n"
    )


def test_fit_goes_on_until_the_launch_is_over_and_answers_between_two_steps(there):
    script = "import tensorflow, keras\nkeras.Model().fit([1, 2, 3], 2)\nprint('never')"
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(there), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    page, reader = Page(there / "page"), heartbeat.Reader(there / "beats")
    try:
        wait_for(lambda: reader.head > 100, "steps of many more epochs than two")
        assert reader.state is State.READY
        assert page.able
        number, answers = page.ask(4), []
        wait_for(lambda: answers.append(page.answered(number)) or answers[-1], "the answer")
        assert answers[-1]["versions"] == {
            "python": sys.version.split()[0],
            "tensorflow": "2.fake",
            "keras": "3.fake",
        }
        assert answers[-1]["threads"] == [len(os.sched_getaffinity(0))] * 2
        assert (there / "traces" / "1" / "begun").is_file()
    finally:
        process.terminate()
        output, _ = process.communicate()
        page.close()
        reader.close()
    assert output == b""


@pytest.mark.parametrize("eager", [True, False])
def test_calls_of_the_function_that_is_named_are_steps_where_python_makes_them(there, eager):
    script = (
        f"import tensorflow as tf, keras\ntf.executing_eagerly = lambda: {eager}\n"
        "@tf.function\ndef train_step(): return 1\n@tf.function\ndef other(): return train_step()\n"
        "print(sum(other() + keras.Model().train_on_batch(1) for _ in range(10)))"
    )
    output, _, beats = ran(there, script, "train_step")
    assert output == "20\n"
    assert beats == (10 - 6 if eager else 0)


def test_what_fails_is_one_line_and_the_program_goes_on(there):
    (there / "beats").write_bytes(b"foreign")
    script = "import keras\nkeras.Model().train_on_batch(1)\nkeras.Model().train_on_batch(2)\nprint('went on')"
    (odd := there / "odd").mkdir()
    (odd / "keras.py").write_text(KERAS.replace("def fit(self", "fit = 1\n    def fitted(self"))
    wrong_fit = environment(there) | {"PYTHONPATH": f"{odd}{os.pathsep}{environment(there)['PYTHONPATH']}"}
    expected = {"steps are no longer followed: HeartbeatError": environment(there), "keras is not followed": wrong_fit}
    for line, variables in expected.items():
        done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "went on\n")
        assert done.stderr.splitlines()[0].startswith(f"castmates: {line}")
        assert "Traceback" not in done.stderr


def test_a_loader_that_takes_nothing_more_loads_all_the_same(there):
    script = (
        "import sys, types\nfrom importlib.machinery import ModuleSpec\n"
        "class Loader:\n    __slots__ = ()\n    def create_module(self, spec): return types.ModuleType('torch')\n"
        "    def exec_module(self, module): module.loaded = True\n"
        "class Finder:\n    def find_spec(name, path, target=None):\n"
        "        return ModuleSpec(name, Loader()) if name == 'torch' else None\n"
        "sys.meta_path.insert(1, Finder)\nimport torch\nprint(torch.loaded)"
    )
    output, errors, _ = ran(there, script)
    assert output == "True\n"
    assert errors.startswith("castmates: torch is not followed: ")


def test_a_result_that_cannot_be_looked_at_is_one_line_too(there):
    output, errors, beats = ran(there, "import jax\nstep = jax.jit(lambda n: n + 1)\nprint([step(n) for n in (1, 2)])")
    assert (output, beats) == ("[2, 3]\n", 0)
    assert errors.startswith("castmates: steps are no longer followed: TypeError: odd\n")


def test_when_an_optimizer_is_let_go_of_the_next_one_takes_its_place(there):
    """Also where nothing is collected by itself for a long time."""
    script = (
        "import gc, torch\ngc.disable()\nfor steps in (10, 50):\n    optimizer = torch.optim.Optimizer()\n"
        "    for _ in range(steps): optimizer.step()"
    )
    _, errors, beats = ran(there, script, **{FOLDER: ""})
    assert beats == (10 - 6) + (50 - 29), errors


def test_a_fork_of_the_program_makes_no_heartbeats(there):
    script = (
        "import os, keras\nmodel = keras.Model()\nfor n in range(10): model.train_on_batch(n)\n"
        "if not (child := os.fork()):\n for n in range(50): model.train_on_batch(n)\n os._exit(0)\n"
        "os.waitpid(child, 0)"
    )
    assert ran(there, script)[2] == 10 - 6


def test_the_machine_s_own_sitecustomize_runs_too_and_nothing_happens_without_a_listener(there):
    (there / "sitecustomize.py").write_text("import builtins\nbuiltins.usual = 'ran'\n")
    script = (
        "import sys, keras\n"
        "print(usual, sys.modules['sitecustomize'].__file__, hasattr(keras.Model.fit, '__wrapped__'))"
    )
    expected = f"ran {there / 'sitecustomize.py'} "
    assert ran(there, script)[0] == f"{expected}True\n"
    unheard = environment(there) | {heartbeat.VARIABLE: ""}
    done = subprocess.run([sys.executable, "-c", script], env=unheard, capture_output=True, text=True)
    assert done.stdout == f"{expected}False\n"


LOOP = "import tensorflow as tf\n@tf.function\ndef train_step(): return 1\nfor _ in range(50): train_step()"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["no-such-program"], r"no-such-program cannot be started: No such file or directory\."),
        (["python3", "-u", "-E", "train.py"], r"steps of a Python with -E cannot be followed: leave that option out"),
        ([sys.executable, "-c", "import time; time.sleep(900)"], r"has done other things for 5 s than to import Tens"),
        (["true"], r"true: no Python program is seen to begin, .*`castmates measure -- true` measures"),
        ([sys.executable, "-c", "print()"], r"ended without importing TensorFlow, PyTorch or JAX \(Python 3"),
        ([sys.executable, "-c", "import torch_of_no_kind"], r"ended with status 1: it wrote \"ModuleNotFoundError"),
        ([sys.executable, "-c", "import tensorflow"], r"ended after 0 training steps, .* train by one of these"),
        ([sys.executable, "-c", LOOP], r"calls compiled functions: train_step \(50 times\)\. Name the step"),
        (
            [sys.executable, "-c", f"{LOOP.replace('50', '4')}\nimport keras\nkeras.Model().train_on_batch(1)"],
            "after 1 tr",
        ),
    ],
)
def test_a_program_that_cannot_be_traced_is_one_sentence(there, command, sentence):
    wish = Wish(command, "it", variables={"PYTHONPATH": str(there)})
    with pytest.raises(CastmatesError, match=sentence) as caught:
        try_steps(wish, there / "cache", lambda _: None)
    assert "\n" not in str(caught.value)


def test_a_program_that_fails_shows_its_own_traceback(there):
    script = "import tensorflow\ndef load(): raise ValueError('no data in /data')\nload()"
    said = []
    with pytest.raises(CastmatesError, match='status 1: it wrote "ValueError: no data in /data"; only a program'):
        try_steps(Wish([sys.executable, "-c", script], "it", variables={"PYTHONPATH": str(there)}), there, said.append)
    shown = said[said.index("Traceback (most recent call last):") :]
    assert shown[-1] == "ValueError: no data in /data"
    assert not any("castmates" in line for line in shown)


def test_a_program_that_trains_is_tried_until_it_has_made_some_steps(there):
    script = "import tensorflow, keras, time\nkeras.Model().fit(iter(lambda: time.sleep(0.002), 1))"
    wish = Wish([sys.executable, "-c", script], "it", variables={"PYTHONPATH": str(there)})
    found = try_steps(wish, there / "cache", lambda _: None)
    assert found.seconds >= 0.002
    assert found.bytes > 5_000_000
    assert found.versions == {"python": sys.version.split()[0], "tensorflow": "2.fake", "keras": "3.fake"}


# A training of Keras 2 that makes its batches ahead: at once, or each in a tenth of a second, longer than a step takes.
FIT = """
import sys, time
import tensorflow as tf
import tf_keras as keras
def nap(number):
    time.sleep(float(sys.argv[1]))
    return number
def batch(number):
    number = tf.ensure_shape(tf.py_function(nap, [number], tf.int64), ())
    return tf.fill((32, 256), tf.cast(number % 2, tf.float32)), tf.fill((32, 1), number % 2)
dense = keras.layers.Dense
model = keras.Sequential([dense(1024, "relu", input_shape=(256,)), dense(1024), dense(1)])
model.compile("adam", "mse")
batches = tf.data.Dataset.range(10**9).map(batch)
if sys.argv[1] == "0":
    batches = batches.take(8).cache().repeat()
model.fit(batches.prefetch(2), steps_per_epoch=1000, verbose=0)
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize(("seconds", "slow"), [("0", False), ("0.1", True)])
def test_a_fit_that_is_not_changed_waits_for_an_input_that_is_slower_than_its_model(tmp_path, seconds, slow):
    inside = environments.environment_of(environments.build("tfmodels", Path("envs").absolute(), cache_folder()))
    heartbeat.create(tmp_path / "beats")
    page = Page.create(tmp_path / "page")
    path = os.pathsep.join([inside["PATH"], os.environ["PATH"]])
    variables = environment(tmp_path, PATH=path, TF_CPP_MIN_LOG_LEVEL="3", TMPDIR=str(tmp_path))
    process = subprocess.Popen(["python", "-c", FIT, seconds], env=variables, stderr=subprocess.DEVNULL)
    try:
        with heartbeat.Reader(tmp_path / "beats") as reader:
            wait_for(lambda: reader.head > 4 or process.poll() is not None, "steps")
        number = page.ask(8)
        answer = wait_for(lambda: page.answered(number) or process.poll() is not None, "the answer")
    finally:
        process.kill()
        process.wait()
        page.close()
    assert "error" not in answer
    (file,) = (tmp_path / "traces").rglob("*.xplane.pb")
    trace = read_trace(file)
    waits = np.array([each.level == WAITS for each in trace.operations])[trace.calls.operation]
    share = trace.calls.shared_ps[waits].sum() / (trace.step_end_ps - trace.step_begin_ps).sum()
    assert (share > BOUND) == slow, f"{share:.3f} of a step"
    assert {"forward", "backward", "optimizer"} <= {each.place.direction for each in trace.operations}
