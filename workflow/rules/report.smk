# One process for all, as many figures at a time as it has threads: starting one for each takes longer than drawing.
rule draw_figures:
    input:
        plan="results/{study}/plan.json",
        machine="results/{study}/machine.json",
        tables=expand(
            "results/{{study}}/tables/{table}.parquet",
            table=["effects", "attribution", "controls", "windows"],
        ),
        bundles=lambda wildcards: bundle_files(),
        operations=made_by("estimate_operations"),
        recommended=made_by("recommend_partitions"),
        traces=trace_files(),
    output:
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
            suffix=[
                "pdf",
                "png",
                "csv",
                "txt",
                "alt.txt",
                "rst",
                "page.svg",
                "page.json",
            ],
        ),
    log:
        "logs/draw_figures/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    threads: 4
    params:
        study_file=TERMS.study_file,
        figures=TERMS.figures,
    shell:
        "python -P -m castmates.pipeline draw_figures {params.figures} --jobs {threads} --study {params.study_file:q} --results results/{wildcards.study} --output results/{wildcards.study}/figures 2> {log:q}"


rule write_report:
    input:
        plan="results/{study}/plan.json",
        machine="results/{study}/machine.json",
        tables=rules.estimate_effects.output,
        bundles=lambda wildcards: bundle_files(),
        operations=made_by("estimate_operations"),
        traces=made_by("estimate_traces"),
        recommended=made_by("recommend_partitions"),
        looks=lambda wildcards: looks_of_study(),
        tried=trials.launch_files(FOLDER),
        rules_of_findings=own_rules(),
        figures=expand(
            "results/{{study}}/figures/{figure}.{suffix}",
            figure=TERMS.figures,
            suffix=["page.svg", "page.json"],
        ),
    output:
        report(
            "results/{study}/report/index.html",
            category="Report",
            labels={"study": "{study}"},
        ),
    log:
        "logs/write_report/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        study_file=TERMS.study_file,
        study_text=TERMS.study_text,
    shell:
        "python -P -m castmates.pipeline write_report --study {params.study_file:q} --results results/{wildcards.study} --output {output:q} 2> {log:q}"
