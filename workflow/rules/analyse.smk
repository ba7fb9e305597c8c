localrules:
    take_look,


# Where a precision is wanted, or a study is adaptive: decides what goes on. One step for the whole study.
checkpoint take_look:
    input:
        plan="results/{study}/plan.json",
        earlier=earlier_looks,
        # Written last, after the tables: a launch without it is not whole.
        launches=lambda wildcards: launch_files(RECORD, launches_of_look(wildcards)),
    output:
        "results/{study}/looks/{look}.json",
    log:
        "logs/take_look/{study}/{look}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        wanted=wanted_of_looks(),
    shell:
        "python -P -m castmates.pipeline take_look {wildcards.look} --plan {input.plan:q} --by {params.wanted} --output {output:q} 2> {log:q}"


# Thousands of small files are slow: while the study is measured, the tables of some launches at a time are gathered.
rule gather_launches:
    input:
        plan=ancient("results/{study}/plan.json"),
        launches=lambda wildcards: launch_files(
            RECORD, bundles_of(launches_of_study())[wildcards.bundle]
        ),
    output:
        tables=expand(
            "results/{{study}}/bundles/{{bundle}}/{file}",
            file=[file for file in bundle_names.FILES if file != bundle_names.LIST],
        ),
        # Written last: a bundle without it is not whole.
        launches=f"results/{{study}}/bundles/{{bundle}}/{bundle_names.LIST}",
    log:
        "logs/gather_launches/{study}/{bundle}.log",
    # Before any launch, or all of it is left to the end.
    priority: 10_000_000
    conda:
        "../../envs/castmates.yaml"
    shell:
        "python -P -m castmates.pipeline gather_launches {wildcards.bundle} --plan {input.plan:q} --output results/{wildcards.study}/bundles/{wildcards.bundle} 2> {log:q}"


rule estimate_effects:
    input:
        plan="results/{study}/plan.json",
        machine="results/{study}/machine.json",
        # They have the launches: a study of thousands names each of them once, not in every rule.
        bundles=lambda wildcards: bundle_files(),
        # Of a bundle that is there Snakemake takes a missing launch for one that was cleared away.
        missing=lambda wildcards: launch_files(RECORD, missing_launches()),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=tables_of("estimate_effects"),
            suffix=["csv", "parquet"],
        ),
    log:
        "logs/estimate_effects/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    threads: 4
    params:
        margin=TERMS.margin,
        isolated=isolating_option(),
    shell:
        "python -P -m castmates.pipeline estimate_effects --plan {input.plan:q} --machine {input.machine:q} --margin {params.margin} {params.isolated} --jobs {threads} --output results/{wildcards.study}/tables 2> {log:q}"


rule estimate_operations:
    input:
        plan="results/{study}/plan.json",
        profiles=profile_files(),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=tables_of("estimate_operations"),
            suffix=["csv", "parquet"],
        ),
    log:
        "logs/estimate_operations/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        margin=TERMS.margin,
    shell:
        "python -P -m castmates.pipeline estimate_operations --plan {input.plan:q} --margin {params.margin} --output results/{wildcards.study}/tables 2> {log:q}"


rule estimate_traces:
    input:
        plan="results/{study}/plan.json",
        traces=trace_files(),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=tables_of("estimate_traces"),
            suffix=["csv", "parquet"],
        ),
    log:
        "logs/estimate_traces/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        on_demand=traces_on_demand(),
    shell:
        "python -P -m castmates.pipeline estimate_traces --plan {input.plan:q} --output results/{wildcards.study}/tables 2> {log:q}"


rule recommend_partitions:
    input:
        plan="results/{study}/plan.json",
        bundles=lambda wildcards: bundle_files(),
        tables=expand(
            "results/{{study}}/tables/{table}.parquet",
            table=[
                name
                for name in ("effects", "windows", "launches", "services")
                if name in TERMS.tables
            ],
        ),
        confirming=confirming.launch_files(FOLDER),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=tables_of("recommend_partitions"),
            suffix=["csv", "parquet"],
        ),
    log:
        "logs/recommend_partitions/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        lead_loss=TERMS.lead_loss or 0,
    shell:
        "python -P -m castmates.pipeline recommend_partitions --plan {input.plan:q} --lead-loss {params.lead_loss} --output results/{wildcards.study}/tables 2> {log:q}"
