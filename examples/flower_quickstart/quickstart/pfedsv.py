from learners.flower import client_app, server_app
from quickstart.task import Net, load_data

client, server = client_app(load_data, Net), server_app("pfedsv", Net, out="pfedsv-run")
