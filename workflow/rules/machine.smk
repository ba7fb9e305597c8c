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
        # Were masks tested after the facts were noted? Then facts and stamps are renewed; nothing is measured again.
        way_masks=(
            "" if PROJECT.modelled else trial_records.known(CACHE, FOLDER.machine_file)
        ),
        memory_peak=(
            ""
            if PROJECT.modelled
            else trial_records.known(CACHE, FOLDER.machine_file, fact="memory_peak")
        ),
        study_file=str(PROJECT.study_file),
    shell:
        "python -P -m castmates.pipeline describe_machine --study {params.study_file:q} --output {output:q} 2> {log:q}"
