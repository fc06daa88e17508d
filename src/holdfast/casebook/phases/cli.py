"""The CLI of the SDK, as a real child: run as a script, with the prompt as its argument.

It asks for a search, gives a result, and goes on working until it is told to stop. Prompted to fail,
it does; prompted to be slow, it takes a moment to stop.
"""

import json
import signal
import sys
import time

__all__ = ["main"]

_AT_MOST = 30  # seconds, should nobody ever tell it to stop


def main(prompt: str) -> None:
    """Say what a CLI says."""
    if "slow" in prompt:
        signal.signal(signal.SIGTERM, lambda *_: _stop_slowly())
    if "fail" in prompt:
        sys.exit("rate limited")
    _say(type="web_search", query=prompt)
    _say(type="result", result=f"an answer to {prompt!r}")
    time.sleep(_AT_MOST)


def _say(**message: str) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _stop_slowly() -> None:
    time.sleep(1)
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
