"""Rule build_environment: what a workload runs in, built once for each content."""

import argparse

import castmates.pipeline.script
from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.workloads import environments


def main() -> None:
    """Build it, unless its content changed since the workflow was planned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--key", required=True, help="the content that the workflow asked for")
    arguments = parser.parse_args()
    if environments.key(arguments.name, project.ENVIRONMENTS) != arguments.key:
        raise CastmatesError(
            f"the content of the environment '{arguments.name}' is no longer {arguments.key}, which a measured launch "
            "was planned with; run the same command again."
        )
    environments.build(arguments.name, project.ENVIRONMENTS, cache_folder())


castmates.pipeline.script.run(main)
