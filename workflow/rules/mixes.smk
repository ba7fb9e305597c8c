localrules:
    write_plan,
    describe_mix,


rule write_plan:
    output:
        # The old plan is kept while the new one is made: it records what the cache was like.
        update("results/{study}/plan.json"),
    log:
        "logs/write_plan/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        study_file=TERMS.study_file,
        fingerprint=TERMS.plan,
    shell:
        "python -P -m castmates.pipeline write_plan {params.study_file:q} --output {output:q} 2> {log:q}"


rule describe_mix:
    input:
        plan="results/{study}/plan.json",
    output:
        "results/{study}/mixes/{mix}.json",
    log:
        "logs/describe_mix/{study}/{mix}.log",
    conda:
        "../../envs/castmates.yaml"
    shell:
        "python -P -m castmates.pipeline describe_mix {wildcards.mix:q} --plan {input.plan:q} --output {output:q} 2> {log:q}"
