"""Group sizes: the experiments of the paper on data made as it describes, and on the households of Census 2000."""
