"""Records become rows: pictures as sparse histograms of visual terms, and the way back to places in the picture."""
