"""The offline reader: answers, refusals and conflicts."""
