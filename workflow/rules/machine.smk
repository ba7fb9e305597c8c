# No local rule: on a cluster the facts are those of a node, and not of the machine that plans.
rule describe_machine:
    output:
        "results/{study}/machine.json",
    log:
        "logs/describe_machine/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    # The CPUs that a job may use are those that a launch gets.
    threads: whole_machine
    params:
        # Were masks tested after the facts were noted? Then facts and stamps are renewed; nothing is measured again.
        **TERMS.trials,
        study_file=TERMS.study_file,
    shell:
        "python -P -m castmates.pipeline describe_machine --study {params.study_file:q} --output {output:q} 2> {log:q}"
