"""The lab's recipe: how QEMU with RDT and its kernels are built, and how they are booted."""
