"""aimarket-agent, as it is published, against a hub: discover, search, invoke free and paid, channel, receipts, refusals.

Arguments: the hub's URL, and a key of an account. Prints one JSON object with what the client saw.
"""

import json
import sys

from aimarket_agent import AIMarketAgent, ReceiptVerifier

hub, key = sys.argv[1:3]
seen = {}

# A whole run, paid from a channel that the client opens itself.
with AIMarketAgent(hub, budget=0.25) as agent:
    seen["discovered"] = [match["capability_id"] for match in agent.discover("uppercase text", limit=5)]
    seen["run"] = agent.run("uppercase text")

# One call of what is free, and one of what is not, without anything that the client would pay with correctly: it opens a
# channel and does not send its secret.
with AIMarketAgent(hub, budget=0.25) as agent:
    seen["single_without_key"] = agent.invoke_single("shop", "upper@v1", {"text": "x"})

# With a key.
with AIMarketAgent(hub, api_key=key) as agent:
    seen["paid"] = agent.invoke_single("shop", "upper@v1", {"text": "x"})
    seen["free"] = agent.invoke_single("shop", "free@v1", {"text": "x"})
    seen["incomplete"] = agent.invoke_single("shop", "upper@v1", {})
    seen["unknown"] = agent.invoke_single("shop", "none@v1", {})
    seen["elsewhere"] = agent.invoke_single("shop", "upper@v1", {"text": "x"}, source_hub="https://other.example")
    seen["verified_only"] = agent.invoke_single("shop", "upper@v1", {"text": "x"}, verify={"requested": True, "intent": "x"})
    seen["subcontract"] = agent.invoke_single("shop", "upper@v1", {"text": "x"}, subcontract={"allowance_usd": 0.1})
    nonce = seen["paid"]["receipt"]["nonce"]
    seen["verdict"] = agent.wait_for_verification(nonce)
    seen["appeal"] = agent.appeal_verification(nonce, statement="no")
    forged = dict(seen["paid"]["receipt"], price_usd=0.0)
    seen["forged"] = agent.verify_receipt(forged).reason
    seen["key"] = agent._verifiers.keys()
    seen["topup"] = agent.topup_quote(1.0)

with AIMarketAgent(hub, api_key="aimk_nobody") as agent:
    seen["stranger"] = agent.invoke_single("shop", "free@v1", {"text": "x"})

with AIMarketAgent(hub) as agent:
    seen["account"] = agent.create_account("a stranger")
    seen["account_used"] = agent.invoke_single("shop", "free@v1", {"text": "x"})
    wk = agent.session.get(agent._url("/.well-known/ai-market.json")).json()
    seen["pinned"] = ReceiptVerifier.from_well_known(wk).verify(seen["paid"]["receipt"]).verified

print(json.dumps(seen))
