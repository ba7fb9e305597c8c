"""Which operations of a lead's steps lose how much, and what else traces show; pure."""
