"""One source of images per file; each registers itself in `learners.data.dataset.DATASETS`."""
