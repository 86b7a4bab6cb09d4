"""What models are trained to make small, and what they are judged by."""
