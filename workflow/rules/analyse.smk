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


# One process makes tables, figures and page: starting one for each takes longer than what most studies have to do.
rule analyse:
    input:
        plan="results/{study}/plan.json",
        machine="results/{study}/machine.json",
        # They have the launches: a study of thousands names each of them once, not in every rule.
        bundles=lambda wildcards: bundle_files(),
        # Of a bundle that is there Snakemake takes a missing launch for one that was cleared away.
        missing=lambda wildcards: launch_files(RECORD, missing_launches()),
        operations=made_by("estimate_operations"),
        traces=[*trace_files(), *made_by("estimate_traces")],
        looks=lambda wildcards: looks_of_study(),
        confirming=confirming.launch_files(FOLDER),
        tried=trials.launch_files(FOLDER),
        rules_of_findings=own_rules(),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=tables_of("analyse"),
            suffix=["csv", "parquet"],
        ),
        [
            report(
                f"results/{{study}}/figures/{figure}.svg",
                category="Figures",
                labels={"study": "{study}", "figure": figure},
                caption=caption_of(figure),
            )
            for figure in TERMS.figures
        ],
        expand(
            "results/{{study}}/figures/{figure}.{suffix}",
            figure=TERMS.figures,
            suffix=["csv", "txt", "alt.txt", "rst", "page.svg", "page.json"],
        ),
        report(
            "results/{study}/report/index.html",
            category="Report",
            labels={"study": "{study}"},
        ),
    log:
        "logs/analyse/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    threads: 4
    params:
        study_file=TERMS.study_file,
        study_text=TERMS.study_text,
        figures=TERMS.figures,
    shell:
        "python -P -m castmates.pipeline analyse --study {params.study_file:q} --results results/{wildcards.study} --jobs {threads} 2> {log:q}"
