# A measured launch has the machine to itself, by three layers: all threads, all of the resource `machine`
# (profiles/default), and the runner's machine-wide lock. Inputs are ancient: only `spec` may cause a new measurement.
# A launch that is over waits for none that lack: Snakemake would make it anew after them, `ancient` or not.
rule measure_launch:
    input:
        planned=planned_before(),
        # Snakemake looks at the signature of each function for every launch, so only those that are needed are there.
        rounds=ancient(rounds_of_launch) if SWEEP.undecided else [],
        environments=environments_of(),
        inputs=inputs_of(),
        again=again if SWEEP.torn_note else [],
    output:
        # Its tables lie beside it and are written before it: naming them too would make eight files of every launch.
        launch="results/{study}/launches/{cohort}/{number}/launch.json",
    log:
        "logs/measure_launch/{study}/{cohort}/{number}.log",
    priority: run_order
    conda:
        "../../envs/castmates.yaml"
    threads: whole_machine
    resources:
        **slurm_resources(),
    params:
        spec=spec_of_launch,
    shell:
        "python -P -m castmates.pipeline measure_launch {wildcards.cohort:q}/{wildcards.number} --plan results/{wildcards.study}/plan.json --output {output.launch:q} --owner $PPID 2> {log:q}"


# Apart from measured launches, and after them: what is traced runs slower, and a study that comes to profile measures nothing again.
rule profile_launch:
    input:
        planned=planned_before("profiles/"),
        environments=environments_of("profiles/"),
        inputs=inputs_of("profiles/"),
    output:
        record="results/{study}/profiles/{cohort}/{number}/profile.json",
    log:
        "logs/profile_launch/{study}/{cohort}/{number}.log",
    conda:
        "../../envs/castmates.yaml"
    threads: whole_machine
    resources:
        **slurm_resources("profiles/"),
    params:
        spec=lambda wildcards: terms_of_profile(wildcards).spec,
    shell:
        "python -P -m castmates.pipeline profile_launch {wildcards.cohort:q}/{wildcards.number} --plan results/{wildcards.study}/plan.json --output {output.record:q} --owner $PPID 2> {log:q}"


# Apart from these too, and on demand by `castmates trace record`: one launch in which everything that happens is recorded.
rule trace_launch:
    input:
        planned=planned_before("traces/"),
        environments=environments_of("traces/"),
        inputs=inputs_of("traces/"),
    output:
        record="results/{study}/traces/{trace}/trace.json",
    log:
        "logs/trace_launch/{study}/{trace}.log",
    conda:
        "../../envs/castmates.yaml"
    threads: whole_machine
    resources:
        **slurm_resources("traces/"),
    params:
        spec=lambda wildcards: terms_of_trace(wildcards).spec,
    shell:
        "python -P -m castmates.pipeline trace_launch {wildcards.trace:q} --plan results/{wildcards.study}/plan.json --output {output.record:q} --owner $PPID 2> {log:q}"
