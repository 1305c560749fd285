"""Serves aimarket-hub with these capabilities, or asks its search in this process.

    aimarket.py serve CAPABILITIES PORT      from the database that AIMARKET_DB_PATH names
    aimarket.py ask CAPABILITIES QUERIES     prints the milliseconds of each query as JSON
    aimarket.py market PROVIDER PORT         sells what PROVIDER does; who pays is in purses.json
"""

import json
import sys
import time

from aimarket_hub.models import Capability


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def capabilities(path):
    return [
        Capability(
            capability_id=row["id"],
            product_id=row["agent"],
            name=row["name"],
            description=row["description"],
            # What cannot be invoked or is not trusted, it does not offer.
            invoke_url="https://provider.example/invoke",
            trust_score=0.5,
        )
        for row in lines(path)
    ]


def hub(offered):
    from aimarket_hub.config import HubConfig
    from aimarket_hub.database import HubDatabase

    config = HubConfig()
    database = HubDatabase(config.db_path)
    for capability in offered:
        database.upsert_capability(capability)
    return config, database


def run(config, database, port):
    import uvicorn
    from aimarket_hub.api import create_app

    app = create_app(config=config, db=database)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


def serve(path, port):
    run(*hub(capabilities(path)), port)


def market(provider, port):
    from aimarket_hub.channels import open_channel
    from aimarket_hub.credits import CreditsLedger

    def echo(name, price):
        return Capability(
            capability_id=name, product_id="bench", name=name, description="Answers with its input.",
            invoke_url=provider, price_per_call_usd=price, trust_score=0.5,
        )

    config, database = hub([echo("free@v1", 0.0), echo("paid@v1", 0.0001)])
    account = CreditsLedger(database._conn).create_account("bench", grant_usd=100_000)
    channel = open_channel(10_000)["channel"]
    purses = {
        "key": account["api_key"],
        "channel": channel["channel_id"],
        "secret": channel["channel_secret"],
    }
    with open("purses.json", "w", encoding="utf-8") as file:
        json.dump(purses, file)
    run(config, database, port)


def ask(path, queries):
    from aimarket_hub.semantic_search import load_localized_descriptions, rank_capabilities

    # Its best form: no database, no HTTP, and what it keeps of capabilities is kept already.
    offered, localized = capabilities(path), load_localized_descriptions()
    queries = lines(queries)
    rank_capabilities(queries[0], offered, limit=20, localized_descriptions=localized)
    took = []
    for query in queries:
        begun = time.perf_counter()
        rank_capabilities(query, offered, limit=20, localized_descriptions=localized)
        took.append(1_000 * (time.perf_counter() - begun))
    print(json.dumps(took))


if __name__ == "__main__":
    {"serve": serve, "ask": ask, "market": market}[sys.argv[1]](*sys.argv[2:])
