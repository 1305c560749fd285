"""What aimarket-hub, as it is published, says of signed objects.

Reads one JSON object from standard input: `{"key": base64, "manifest", "well_known", "prices", "receipts": []}`, each as a hub
gave it out. Prints what its own functions say of each, and of the same with a member changed; and what faults its validators
find, with the schemas that AIMARKET_SCHEMA_DIR names.
"""

import copy
import json
import os
import sys
import tempfile

from aimarket_hub.signing import Signer
from aimarket_hub.validator import validate_manifest, validate_receipt, validate_well_known

asked = json.load(sys.stdin)
key = asked["key"]
signer = Signer(os.path.join(tempfile.mkdtemp(), "key"), pqc=False)


def receipt(value):
    return signer.verify_receipt_signature(value, known_public_key=key)


def both(verify, value, member, other):
    """The verdict about it, and about the same with another member."""
    changed = copy.deepcopy(value)
    changed[member] = other
    return [verify(value), verify(changed)]


def manifest(value):
    return signer.verify_manifest_signature(value, key)


def document(value):
    return Signer.verify_object_signature(value, key)


cheaper = copy.deepcopy(asked["manifest"]["tools"])
cheaper[-1]["price_per_call_usd"] = 0.00001
said = {
    "manifest": both(manifest, asked["manifest"], "generated_at", "2020-01-01T00:00:00Z"),
    "manifest_prices": both(manifest, asked["manifest"], "tools", cheaper),
    "manifest_faults": validate_manifest(asked["manifest"]),
    "well_known": both(document, asked["well_known"], "name", "another"),
    "well_known_faults": validate_well_known(asked["well_known"]),
    "prices": both(document, asked["prices"], "currency", "EUR"),
    "receipts": [both(receipt, value, "price_usd", 7.5) for value in asked["receipts"]],
    "receipt_faults": [validate_receipt(value) for value in asked["receipts"]],
}
print(json.dumps(said))
