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
        "python scripts/build_environment.py {wildcards.environment:q} --key {wildcards.key:q} 2>&1 | tee {log:q}"
