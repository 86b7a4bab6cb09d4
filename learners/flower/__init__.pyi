from learners.flower.node import client_app as client_app
from learners.flower.server import server_app as server_app
