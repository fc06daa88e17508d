"""The CLI of the SDK: a script with the prompt as its argument.

It requests a search, prints a result, and keeps running until SIGTERM. With "fail" in the prompt it
fails; with "slow" it takes a second to stop, with "very slow" it has to be killed.
"""

import json
import signal
import sys
import time

__all__ = ["main"]

_AT_MOST = 30  # seconds, in case it is never stopped


def main(prompt: str) -> None:
    """Print the messages."""
    if "slow" in prompt:
        signal.signal(signal.SIGTERM, lambda *_: _stop_slowly(prompt))
    if "fail" in prompt:
        sys.exit("rate limited")
    _print(type="web_search", query=prompt)
    _print(type="result", result=f"an answer to {prompt!r}")
    time.sleep(_AT_MOST)


def _print(**message: str) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _stop_slowly(prompt: str) -> None:
    time.sleep(_AT_MOST if "very slow" in prompt else 1)
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
