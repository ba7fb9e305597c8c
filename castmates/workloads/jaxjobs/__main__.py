"""Run one JAX job, step after step, with a heartbeat for each."""

import os
import sys
import time
from collections.abc import Mapping

from castmates.workloads.jaxjobs.shapes import SHAPES
from castmates.workloads.jobs import asked, loop

STARTED = time.monotonic()


def main() -> int:
    """Run the job that the command line names until it is asked to stop."""
    wanted = asked.parse("castmates.workloads.jaxjobs", str(__doc__), SHAPES, ("cpu",))
    shape = SHAPES[wanted.model, wanted.size]
    os.environ |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
    for pool in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # NPROC: the threads of XLA
        os.environ[pool] = str(wanted.threads)

    def build() -> tuple[loop.Job, Mapping[str, object]]:
        try:
            from castmates.workloads.jaxjobs import job
        except ModuleNotFoundError as error:
            raise loop.Unusable(
                f"This Python has no module '{error.name}': run the job in the jax environment (castmates "
                "internals build-environment jax)."
            ) from None
        built = job.JaxJob(wanted, shape)
        return built, job.facts() | {"seconds_to_build": round(time.monotonic() - STARTED, 2)}

    return loop.main(wanted, wanted.known(shape), build)


if __name__ == "__main__":
    sys.exit(main())
