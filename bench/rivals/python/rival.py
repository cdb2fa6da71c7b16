"""Measures kazoo's recipes.

Each line of the input asks for one slice; each is answered with one line of JSON. The program stays alive between the
slices and ends with its input.
"""
import json
import logging
import os
import sys

import scenarios
from slices import Slice, Tally


def answer(line):
    tally = Tally()
    with Slice(line) as s:
        scenarios.run(s, tally)
    return tally.result()


def main():
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        try:
            result = answer(line)
        except Exception as e:
            result = {"error": repr(e)}
        print(json.dumps(result), flush=True)
    os._exit(0)  # threads may hang


main()
