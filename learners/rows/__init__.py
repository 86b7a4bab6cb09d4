"""Models as rows of one flat tensor."""
