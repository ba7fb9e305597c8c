localrules:
    take_look,


# Only where a precision is wanted: says which companies need more blocks. One step for the whole study.
checkpoint take_look:
    input:
        plan="results/{study}/plan.json",
        earlier=earlier_looks,
        # Written last: a block without it is not whole.
        blocks=lambda wildcards: block_files("block.json", blocks_of_look(wildcards)),
        windows=lambda wildcards: block_files(
            "windows.parquet", blocks_of_look(wildcards)
        ),
    output:
        "results/{study}/looks/{look}.json",
    log:
        "logs/take_look/{study}/{look}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        precision=PROJECT.study.budget.precision,
    shell:
        "python scripts/take_look.py {wildcards.look} --plan {input.plan:q} --precision {params.precision} --output {output:q} 2> {log:q}"


rule estimate_effects:
    input:
        plan="results/{study}/plan.json",
        machine="results/{study}/machine.json",
        blocks=lambda wildcards: block_files("block.json", blocks_of_study()),
        windows=lambda wildcards: block_files("windows.parquet", blocks_of_study()),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=[
                "effects",
                "attribution",
                "controls",
                "carryover",
                "margins",
                "system",
                "latency",
                "resources",
                "blocks",
                "stamps",
                "windows",
            ],
            suffix=["csv", "parquet"],
        ),
    log:
        "logs/estimate_effects/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        margin=PROJECT.study.margin,
        isolated=isolating_option(),
    shell:
        "python scripts/estimate_effects.py --plan {input.plan:q} --machine {input.machine:q} --margin {params.margin} {params.isolated} --output results/{wildcards.study}/tables 2> {log:q}"


# What figures read of all blocks lies in one file: thousands of small ones are slow.
rule gather_table:
    input:
        plan="results/{study}/plan.json",
        blocks=lambda wildcards: block_files("block.json", blocks_of_study()),
    output:
        "results/{study}/tables/{gathered}.parquet",
    log:
        "logs/gather_table/{study}/{gathered}.log",
    conda:
        "../../envs/castmates.yaml"
    shell:
        "python scripts/gather_table.py {wildcards.gathered} --plan {input.plan:q} --output {output:q} 2> {log:q}"


rule recommend_partitions:
    input:
        plan="results/{study}/plan.json",
        blocks=lambda wildcards: block_files("block.json", blocks_of_study()),
        tables=expand(
            "results/{{study}}/tables/{table}.parquet", table=["effects", "windows"]
        ),
        confirming=confirm.block_files(PROJECT.results),
    output:
        expand(
            "results/{{study}}/tables/{table}.{suffix}",
            table=["sensitivity", "knees", "pareto", "recommendations"],
            suffix=["csv", "parquet"],
        ),
    log:
        "logs/recommend_partitions/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        lead_loss=PROJECT.study.recommend.lead_loss or 0,
    shell:
        "python scripts/recommend_partitions.py --plan {input.plan:q} --lead-loss {params.lead_loss} --output results/{wildcards.study}/tables 2> {log:q}"
