"""Run one PyTorch job, step after step, with a heartbeat for each."""

import os
import sys
import time
from collections.abc import Mapping

from castmates.workloads.jobs import asked, loop
from castmates.workloads.torchjobs.shapes import SHAPES

STARTED = time.monotonic()


def main() -> int:
    """Run the job that the command line names until it is asked to stop."""
    wanted = asked.parse("castmates.workloads.torchjobs", str(__doc__), SHAPES, ("cpu", "gpu"))
    shape = SHAPES[wanted.model, wanted.size]
    for pool in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read when PyTorch is imported
        os.environ[pool] = str(wanted.threads)
    if wanted.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""

    def build() -> tuple[loop.Job, Mapping[str, object]]:
        try:
            from castmates.workloads.torchjobs import job
        except ModuleNotFoundError as error:
            raise loop.Unusable(
                f"This Python has no module '{error.name}': run the job in the torch environment (castmates "
                "internals build-environment torch)."
            ) from None
        built = job.TorchJob(wanted, shape)
        return built, job.facts() | {"seconds_to_build": round(time.monotonic() - STARTED, 2)}

    return loop.main(wanted, wanted.known(shape), build)


if __name__ == "__main__":
    sys.exit(main())
