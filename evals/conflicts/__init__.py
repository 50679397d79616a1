"""What BriefContext makes of sources that contradict each other."""
