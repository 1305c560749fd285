"""aimarket-hub, as it is published, on loopback: sells what a file lists, and is otherwise told nothing.

Arguments: a port, and a file with `[{product_id, capability_id, name, description, price_usd, invoke_url, input_schema,
output_schema}]`. Its settings are in the environment. Two things are changed, both because every hub of a test is on this
machine: loopback is no private network, and names resolve to IPv4, where the hubs listen.
"""

import json
import socket
import sys

import uvicorn
from aimarket_hub import crawler
from aimarket_hub.api import create_app
from aimarket_hub.config import HubConfig
from aimarket_hub.database import HubDatabase
from aimarket_hub.models import Capability

port, sold = sys.argv[1:3]

crawler._addr_is_blocked = lambda address: False
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, port, family=0, *rest, **named: resolve(host, port, socket.AF_INET, *rest, **named)

config = HubConfig()
database = HubDatabase(config.db_path)
with open(sold, encoding="utf-8") as file:
    for row in json.load(file):
        database.upsert_capability(
            Capability(
                capability_id=row["capability_id"],
                product_id=row["product_id"],
                name=row["name"],
                description=row["description"],
                price_per_call_usd=row["price_usd"],
                routed_price_usd=row["price_usd"],
                invoke_url=row["invoke_url"],
                input_schema=row["input_schema"],
                output_schema=row["output_schema"],
                # What it does not trust, it does not offer.
                trust_score=0.5,
            )
        )

app = create_app(config=config, db=database)
uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="info", access_log=False)
