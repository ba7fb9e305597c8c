rule draw_figure:
    input:
        plan="results/{study}/plan.json",
        machine="results/{study}/machine.json",
        tables=expand(
            "results/{{study}}/tables/{table}.parquet",
            table=["effects", "attribution", "controls", "windows"],
        ),
        gathered=lambda wildcards: gathered_tables([wildcards.figure]),
        recommended=rules.recommend_partitions.output,
    output:
        svg=report(
            "results/{study}/figures/{figure}.svg",
            category="Figures",
            labels={"study": "{study}", "figure": "{figure}"},
            caption="../report/figure.rst",
        ),
        pdf="results/{study}/figures/{figure}.pdf",
        png="results/{study}/figures/{figure}.png",
        csv="results/{study}/figures/{figure}.csv",
        caption="results/{study}/figures/{figure}.txt",
    log:
        "logs/draw_figure/{study}/{figure}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        study_file=str(PROJECT.study_file),
    shell:
        "python scripts/draw_figure.py --figure {wildcards.figure} --study {params.study_file:q} --results results/{wildcards.study} --output-stem results/{wildcards.study}/figures/{wildcards.figure} 2> {log:q}"


rule write_report:
    input:
        plan="results/{study}/plan.json",
        machine="results/{study}/machine.json",
        tables=rules.estimate_effects.output,
        gathered=gathered_tables(GATHERED_HERE),
        recommended=rules.recommend_partitions.output,
        looks=lambda wildcards: looks_of_study(),
        figures=expand("results/{{study}}/figures/{figure}.svg", figure=FIGURES),
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
        study_file=str(PROJECT.study_file),
        study_text=PROJECT.fingerprint,
    shell:
        "python scripts/write_report.py --study {params.study_file:q} --results results/{wildcards.study} --output {output:q} 2> {log:q}"
