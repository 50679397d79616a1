"""``posology fetch``, and the options of ``posology ask --live``."""
