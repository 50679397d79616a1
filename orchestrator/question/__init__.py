"""One question from request to report: retrieve, decide, run the strategy, conclude."""
