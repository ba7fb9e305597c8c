"""Rule build_inputs: what a workload reads, made once for each content."""

import argparse

import castmates.pipeline.script
from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.workloads import inputs


def main() -> None:
    """Make it, unless its content changed since the workflow was planned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--key", required=True, help="the content that the workflow asked for")
    arguments = parser.parse_args()
    if inputs.key(arguments.name, project.ENVIRONMENTS) != arguments.key:
        raise CastmatesError(
            f"the content of the data set '{arguments.name}' is no longer {arguments.key}, which a measured launch "
            "was planned with; run the same command again."
        )
    inputs.build(arguments.name, project.ENVIRONMENTS, cache_folder())


castmates.pipeline.script.run(main)
