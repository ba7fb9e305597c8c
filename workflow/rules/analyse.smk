rule estimate_effects:
    input:
        plan="results/{study}/plan.json",
        blocks=lambda wildcards: block_files("block.json"),
        windows=lambda wildcards: block_files("windows.parquet"),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=["effects", "controls", "blocks", "windows"],
            suffix=["csv", "parquet"],
        ),
    log:
        "logs/estimate_effects/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        margin=PROJECT.study.margin,
    shell:
        "python scripts/estimate_effects.py --plan {input.plan:q} --margin {params.margin} --output results/{wildcards.study}/tables 2> {log:q}"
