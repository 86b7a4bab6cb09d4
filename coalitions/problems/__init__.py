"""Games of problems that people have: explain a model, value data, share costs."""
