localrules:
    decide_rounds,


# Only with `rounds: auto`. What was decided once stays, or launches of a cohort would differ for no reason.
rule decide_rounds:
    input:
        plan=ancient("results/{study}/plan.json"),
        launches=ancient(first_launches),
    output:
        update("results/{study}/rounds/{cohort}.json"),
    log:
        "logs/decide_rounds/{study}/{cohort}.log",
    # Before any launch: others wait for it.
    priority: 10_000_000
    conda:
        "../../envs/castmates.yaml"
    params:
        protocol=TERMS.protocol,
        study_file=TERMS.study_file,
    shell:
        "python -P -m castmates.pipeline decide_rounds {wildcards.cohort:q} --plan {input.plan:q} --study {params.study_file:q} --output {output:q} 2> {log:q}"
