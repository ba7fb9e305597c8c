"""What every room knows of the kernel: processes, control groups, small files, perf events."""
