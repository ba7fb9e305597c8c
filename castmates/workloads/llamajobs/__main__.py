"""Answer requests to a language model with llama.cpp, one after the other, with a heartbeat for each."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from castmates.workloads.jobs import loop
from castmates.workloads.jobs.asked import SEED
from castmates.workloads.llamajobs import asked

STARTED = time.monotonic()
# The value of the last warm-up request, of the usual seed and lengths, by the bytes of the model's file.
KNOWN = {2_826_976: 0.819454, 103_696_288: 0.803956}
USUAL = (32, 17, SEED)


def main() -> int:
    """Run the job that the command line names until it is asked to stop."""
    wanted = asked.parse()
    os.environ["OMP_NUM_THREADS"] = str(wanted.threads)  # read when llama.cpp is imported

    def build() -> tuple[loop.Job, Mapping[str, object]]:
        try:
            from castmates.workloads.llamajobs import job
        except ModuleNotFoundError as error:
            raise loop.Unusable(
                f"This Python has no module '{error.name}': run the job in the llama environment (castmates "
                "internals build-environment llama)."
            ) from None
        built = job.LlamaJob(wanted)
        return built, built.facts() | {"seconds_to_build": round(time.monotonic() - STARTED, 2)}

    usual = (wanted.prompt, wanted.generate, wanted.seed) == USUAL
    return loop.main(wanted, KNOWN.get(Path(wanted.model).stat().st_size) if usual else None, build)


if __name__ == "__main__":
    sys.exit(main())
