"""What traces show: how threads got on, what they waited for, and what the kernel did for them."""
