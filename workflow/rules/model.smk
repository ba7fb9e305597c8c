# In place of measure.smk where the study's platform is modelled: launches take nothing of the machine, so they run
# side by side on all cores and need no environments.
rule model_launch:
    input:
        planned=planned_before(),
        # Snakemake looks at the signature of each function for every launch, so only those that are needed are there.
        rounds=ancient(rounds_of_launch) if SWEEP.undecided else [],
        again=again if SWEEP.torn_note else [],
    output:
        # Its tables lie beside it and are written before it: naming them too would make eight files of every launch.
        launch="results/{study}/launches/{cohort}/{number}/launch.json",
    log:
        "logs/measure_launch/{study}/{cohort}/{number}.log",
    priority: run_order
    conda:
        "../../envs/castmates.yaml"
    resources:
        machine=0,
        # As profiles/default has them: what stands in a rule is not worked out for every launch.
        mem_mb=1000,
        disk_mb=1000,
    params:
        spec=spec_of_launch,
    shell:
        "python -P -m castmates.pipeline measure_launch {wildcards.cohort:q}/{wildcards.number} --plan results/{wildcards.study}/plan.json --output {output.launch:q} --owner $PPID 2> {log:q}"
