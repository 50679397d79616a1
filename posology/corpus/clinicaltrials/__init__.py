"""Study records of ClinicalTrials.gov, as its API 2 gives them: the protocol, and the posted results as rows of tables."""
