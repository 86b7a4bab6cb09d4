from learners.data.own.hugging_face import from_hf as from_hf
