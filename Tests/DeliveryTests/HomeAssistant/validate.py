"""Validates discovery messages by discovery.schema.json: validate.py FILE

FILE has a list of {"topic": …, "payload": …}. It prints what is wrong, a line each.
"""

import json
import os
import sys

import jsonschema

with open(os.path.join(os.path.dirname(__file__), "discovery.schema.json"), encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
with open(sys.argv[1], encoding="utf-8") as file:
    for message in json.load(file):
        for error in validator.iter_errors(message):
            print(f"{message['topic']}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
