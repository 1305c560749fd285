"""Serves aimarket-hub with these capabilities, or asks its search in this process.

    aimarket.py serve CAPABILITIES PORT      from the database that AIMARKET_DB_PATH names
    aimarket.py ask CAPABILITIES QUERIES     prints the milliseconds of each query as JSON
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


def serve(path, port):
    import uvicorn
    from aimarket_hub.api import create_app
    from aimarket_hub.config import HubConfig
    from aimarket_hub.database import HubDatabase

    config = HubConfig()
    database = HubDatabase(config.db_path)
    for capability in capabilities(path):
        database.upsert_capability(capability)
    app = create_app(config=config, db=database)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


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
    {"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
