"""aimarket-bridges, as it is published, against a hub: the catalogue as tools, calls, budgets, receipts, refusals.

Arguments: the hub's URL, and a key of an account. Prints one JSON object with what the client saw.
"""

import json
import logging
import re
import sys
from dataclasses import asdict

from aimarket_agent import AIMarketAgent
from aimarket_bridges import BudgetExceeded, CatalogError, HubClient, fetch_catalog

logging.disable(logging.CRITICAL)
hub, key = sys.argv[1:3]
seen = {}


def told(result):
    return dict(asdict(result), for_model=result.for_model())


catalogue = fetch_catalog(hub)
by_id = {capability.capability_id: capability for capability in catalogue}
seen["names"] = [capability.tool_name for capability in catalogue]
seen["named_well"] = all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in seen["names"])
seen["gaps"] = {capability.capability_id: capability.schema_gaps for capability in catalogue if capability.schema_gaps}

# Every property reaches the wire under its own name.
wire = {}
for capability in catalogue:
    model = capability.args_model()
    schema = model.model_json_schema(by_alias=True)
    wire[capability.capability_id] = sorted(schema.get("properties", {}))
    wanted = sorted(capability.input_schema.get("properties", {}))
    assert wire[capability.capability_id] == wanted, (capability.capability_id, wanted, wire[capability.capability_id])
seen["properties"] = sum(len(names) for names in wire.values())
seen["described"] = by_id["loud@v1"].tool_description()
seen["ranked"] = [capability.capability_id for capability in fetch_catalog(hub, intent="loud", limit=5)]
seen["cheap"] = [capability.capability_id for capability in fetch_catalog(hub, max_price_usd=0.0)]

try:
    fetch_catalog("http://127.0.0.1:1")
    seen["unreachable"] = "a catalogue"
except CatalogError:
    seen["unreachable"] = "CatalogError"

# As it comes: no money, its trial header on every request.
with HubClient(hub, budget_usd=1.0) as client:
    seen["free"] = told(client.invoke(by_id["free@v1"], {"text": "x"}))
    seen["trial"] = told(client.invoke(by_id["loud@v1"], {"text": "x"}))
    seen["trial_used"] = told(client.invoke(by_id["loud@v1"], {"text": "x"}))
    seen["tier_within"] = told(client.invoke(by_id["puzzle@v1"], {"puzzle": {"T": 10}}))
    seen["tier_beyond"] = told(client.invoke(by_id["puzzle@v1"], {"puzzle": {"T": 11}}))
    seen["incomplete"] = told(client.invoke(by_id["free@v1"], {}))
    seen["spent_unpaid"] = client.spent_usd

# With a key of an account.
with HubClient(hub, budget_usd=0.05, agent=AIMarketAgent(hub, api_key=key, verify_receipts=False)) as client:
    seen["paid"] = told(client.invoke(by_id["loud@v1"], {"text": "x"}))
    seen["spent"] = client.spent_usd
    try:
        for _ in range(10):
            client.invoke(by_id["loud@v1"], {"text": "x"})
    except BudgetExceeded as exceeded:
        seen["exceeded"] = str(exceeded)
    seen["spent_at_last"] = client.spent_usd

# A budget of nothing calls what is free.
with HubClient(hub, budget_usd=0, agent=AIMarketAgent(hub, api_key=key, verify_receipts=False)) as client:
    seen["free_for_nothing"] = told(client.invoke(by_id["free@v1"], {"text": "x"}))

print(json.dumps(seen))
