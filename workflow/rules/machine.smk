localrules:
    describe_machine,


rule describe_machine:
    output:
        "results/{study}/machine.json",
    log:
        "logs/describe_machine/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    shell:
        "python scripts/describe_machine.py --output {output:q} 2> {log:q}"
