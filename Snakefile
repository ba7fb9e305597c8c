# So that a clone runs with plain `snakemake`; an included file cannot set the default target.
include: "workflow/Snakefile"


rule sweep:
    input:
        rules.all.input,
