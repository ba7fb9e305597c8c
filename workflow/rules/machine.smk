localrules:
    describe_machine,


rule describe_machine:
    output:
        "results/{study}/machine.json",
    log:
        "logs/describe_machine/{study}.log",
    conda:
        "../../envs/castmates.yaml"
    params:
        # Tried after the facts were noted? Then they are noted anew, and the stamps with them; nothing is measured again.
        way_masks=(
            "" if PROJECT.modelled else trial_records.known(CACHE, FOLDER.machine_file)
        ),
        study_file=str(PROJECT.study_file),
    shell:
        "python -P -m castmates.pipeline describe_machine --study {params.study_file:q} --output {output:q} 2> {log:q}"
