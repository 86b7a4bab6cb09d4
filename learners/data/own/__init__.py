"""A user's own data: files, folders, data frames and Hugging Face data sets, as a federation."""
