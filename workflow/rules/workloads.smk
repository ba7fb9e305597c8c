localrules:
    build_environment,


# Local, since only the machine that plans may reach the packages.
# The key in the path is a hash of the content (lock file, C sources), so that an environment is built once for each.
rule build_environment:
    output:
        str(
            environments.ready_file(
                environments.place_of("{environment}", "{key}", CACHE)
            )
        ),
    log:
        "logs/build_environment/{environment}-{key}.log",
    wildcard_constraints:
        environment="[a-z0-9][a-z0-9._-]*",
        key="[0-9a-f]{12}",
    conda:
        "../../envs/castmates.yaml"
    shell:
        "python -P -m castmates.pipeline build_environment {wildcards.environment:q} --key {wildcards.key:q} > {log:q} 2>&1"


# As above: the key digests the generator, so that a data set is made once for each.
rule build_inputs:
    input:
        ancient(environment_of_inputs),
    output:
        str(inputs.ready_file(inputs.place_of("{inputs}", "{key}", CACHE))),
    log:
        "logs/build_inputs/{inputs}-{key}.log",
    wildcard_constraints:
        inputs="[a-z0-9][a-z0-9._-]*",
        key="[0-9a-f]{12}",
    conda:
        "../../envs/castmates.yaml"
    shell:
        "python -P -m castmates.pipeline build_inputs {wildcards.inputs:q} --key {wildcards.key:q} > {log:q} 2>&1"
