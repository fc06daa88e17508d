import handfast
from examples.programs.graceful_shutdown import handle, requests


async def main() -> None:
    scope = handfast.Scope("server")
    try:
        async for request in requests():
            scope.spawn(handle(request))
    finally:
        await scope.close(grace=1)
        print("closed")


if __name__ == "__main__":
    handfast.run(main)
