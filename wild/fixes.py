"""Check published packages: each bug must be found in the release that has it, not in its fix.

The rows of `FIXES` are bugs that their authors have mended. A release is only downloaded and
unpacked, never installed or imported; then the file with the bug goes through the checker.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.check import Finding

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
CACHE = Path(os.environ.get("HOLDFAST_WILD_CACHE", "~/.cache/holdfast/wild")).expanduser()
# A wheel for the Python of here, one for an old Python, or the source: the text is the same.
WAYS: tuple[tuple[str, ...], ...] = (
    ("--only-binary", ":all:"),
    ("--only-binary", ":all:", "--python-version", "3.8", "--platform", "manylinux1_x86_64"),
    ("--only-binary", ":all:", "--python-version", "3.8", "--platform", "manylinux2014_x86_64"),
    (),
)


@dataclass(frozen=True)
class Fix:
    """One bug that was mended: in `function` of the file `path`, or anywhere in it."""

    package: str
    bad: str
    good: str
    path: str
    code: str
    function: str
    what: str


FIXES = (
    Fix(
        "aioesphomeapi",
        "11.2.0",
        "17.0.1",
        "aioesphomeapi/reconnect_logic.py",
        "HF101",
        "ReconnectLogic.stop_callback",
        "The task that stops is kept in an attribute until it is done.",
    ),
    Fix(
        "aiohomekit",
        "2.6.16",
        "3.0.2",
        "aiohomekit/controller/coap/pairing.py",
        "HF101",
        "CoAPPairing._async_endpoint_changed",
        "The function of the project that makes the task keeps it in a set until it is done.",
    ),
    Fix(
        "aiohttp",
        "3.9.5",
        "3.11.18",
        "aiohttp/web_ws.py",
        "HF101",
        "WebSocketResponse._send_heartbeat",
        "The task of the ping is kept in an attribute.",
    ),
    Fix(
        "bellows",
        "0.32.0",
        "0.36.8",
        "bellows/uart.py",
        "HF101",
        "Gateway.connection_made",
        "The task that sends is kept in an attribute.",
    ),
    Fix(
        "bleak",
        "0.18.1",
        "0.20.2",
        "bleak/backends/scanner.py",
        "HF101",
        "BaseBleakScanner.register_detection_callback",
        "The task of an async callback is kept in a set until it is done.",
    ),
    Fix(
        "discord-py-interactions",
        "5.15.0",
        "5.16.0",
        "interactions/models/internal/tasks/task.py",
        "HF101",
        "Task._task_loop",
        "The task that `_fire` hands back is kept in a set until it is done.",
    ),
    Fix(
        "google-adk",
        "1.17.0",
        "1.19.0",
        "google/adk/runners.py",
        "HF101",
        "Runner.run_async",
        "The compaction is awaited, not left to itself.",
    ),
    Fix(
        "HAP-python",
        "4.7.1",
        "4.8.0",
        "pyhap/accessory_driver.py",
        "HF101",
        "AccessoryDriver.async_update_advertisement",
        "The task is kept until it is done.",
    ),
    Fix(
        "hikari",
        "2.1.1",
        "2.2.1",
        "hikari/impl/event_manager_base.py",
        "HF101",
        "EventManagerBase.consume_raw_event",
        "The task of each event is kept in a set until it is done.",
    ),
    Fix(
        "langchain",
        "0.0.138",
        "0.0.140",
        "langchain/callbacks/streaming_aiter.py",
        "HF101",
        "AsyncIteratorCallbackHandler.aiter",
        "The task that was not the first is cancelled.",
    ),
    Fix(
        "livekit-agents",
        "1.4.6",
        "1.6.10",
        "livekit/agents/ipc/job_proc_lazy_main.py",
        "HF101",
        "_JobProc._run_job_task",
        "The task of the entrypoint is joined, and cancelled if it takes too long.",
    ),
    Fix(
        "nextcord",
        "2.6.0",
        "3.1.1",
        "nextcord/ui/view.py",
        "HF101",
        "View._dispatch_item",
        "The task is kept in a set until it is done.",
    ),
    Fix(
        "python-engineio",
        "4.3.4",
        "4.6.1",
        "engineio/asyncio_server.py",
        "HF101",
        "AsyncServer._handle_connect",
        "The service task is kept, and a shutdown joins it.",
    ),
    Fix(
        "quart",
        "0.16.3",
        "0.19.9",
        "quart/app.py",
        "HF101",
        "Quart.add_background_task",
        "The tasks are kept in a set, not in a weak one.",
    ),
    Fix(
        "zigpy",
        "0.51.6",
        "0.58.1",
        "zigpy/util.py",
        "HF101",
        "CatchingTaskMixin.create_catching_task",
        "The tasks are kept in a set until they are done.",
    ),
    Fix(
        "pyatv",
        "0.9.8",
        "0.11.0",
        "pyatv/support/knock.py",
        "HF103",
        "knock",
        "The cancelled knocks are joined, and their errors looked at.",
    ),
    Fix(
        "livekit-agents",
        "1.2.18",
        "1.4.6",
        "livekit/agents/ipc/job_thread_executor.py",
        "HF131",
        "ThreadJobExecutor._monitor_task",
        "A task leaves the container when it is done.",
    ),
    Fix(
        "livekit-agents",
        "1.4.6",
        "1.6.10",
        "livekit/agents/job.py",
        "HF201",
        "JobContext._participant_available",
        "The done callback removes its own task only, not the successor's.",
    ),
    Fix(
        "zha",
        "1.2.1",
        "1.3.1",
        "zha/application/gateway.py",
        "HF201",
        "Gateway.device_initialized",
        "The done callback removes its own task only, not the successor's.",
    ),
    Fix(
        "aiohttp-devtools",
        "1.1",
        "1.1.1",
        "aiohttp_devtools/runserver/watch.py",
        "HF303",
        "WatchTask.close",
        "The cancelled task is joined.",
    ),
    Fix(
        "openai-agents",
        "0.3.3",
        "0.6.9",
        "agents/realtime/openai_realtime.py",
        "HF303",
        "OpenAIRealtimeWebSocketModel.close",
        "The cancelled task is joined.",
    ),
    Fix(
        "openai-agents",
        "0.18.3",
        "0.21.1",
        "agents/voice/models/openai_stt.py",
        "HF303",
        "OpenAISTTTranscriptionSession._cleanup_tasks",
        "The cancelled tasks are joined.",
    ),
    Fix(
        "telethon",
        "1.5.5",
        "1.11.3",
        "telethon/network/mtprotosender.py",
        "HF303",
        "MTProtoSender._disconnect",
        "The cancelled loops are joined.",
    ),
    Fix(
        "textual",
        "0.59.0",
        "0.70.0",
        "textual/timer.py",
        "HF303",
        "Timer.stop",
        "The cancelled task is handed back to be awaited.",
    ),
    Fix(
        "livekit-agents",
        "1.2.18",
        "1.4.6",
        "livekit/agents/voice/agent_session.py",
        "HF311",
        "AgentSession._update_activity",
        "The activity is held in a local name over the awaits.",
    ),
    Fix(
        "aio-pika",
        "7.1.2",
        "8.1.1",
        "aio_pika/connection.py",
        "HF312",
        "Connection.close",
        "The transport is taken out before it is closed.",
    ),
    Fix(
        "aiohttp",
        "3.8.6",
        "3.9.5",
        "aiohttp/client_ws.py",
        "HF331",
        "ClientWebSocketResponse.close",
        "A flag is set before the first await.",
    ),
    Fix(
        "discord.py",
        "1.6.0",
        "2.0.1",
        "discord/client.py",
        "HF331",
        "Client.close",
        "The flag is set before the first await.",
    ),
    Fix(
        "livekit-agents",
        "0.6.0",
        "0.8.12",
        "livekit/agents/worker.py",
        "HF331",
        "Worker.aclose",
        "The flag is set before the first await.",
    ),
    Fix(
        "asyncio-mqtt",
        "0.8.1",
        "0.9.0",
        "asyncio_mqtt/client.py",
        "HF401",
        "Client._on_socket_open",
        "The callback that runs where `connect` runs hands the task over to the loop.",
    ),
    Fix(
        "meross-iot",
        "0.4.0.2",
        "0.4.4.2",
        "meross_iot/manager.py",
        "HF401",
        "MerossManager._on_subscribe",
        "The thread of the MQTT client schedules by the thread-safe call.",
    ),
    Fix(
        "pipecat-ai",
        "1.3.0",
        "1.4.0",
        "pipecat/services/azure/tts.py",
        "HF402",
        "AzureTTSService._handle_synthesizing",
        "The callback of the speech SDK hands the audio over to the loop.",
    ),
    Fix(
        "aio-pika",
        "9.0.7",
        "9.3.1",
        "aio_pika/robust_connection.py",
        "HF411",
        "RobustConnection._on_connected",
        "The channels are copied before they are restored.",
    ),
    Fix(
        "aio-pika",
        "6.8.2",
        "7.1.2",
        "aio_pika/robust_channel.py",
        "HF411",
        "RobustChannel.restore",
        "Exchanges and queues are copied before they are restored.",
    ),
    Fix(
        "async-upnp-client",
        "0.15.0",
        "0.22.12",
        "async_upnp_client/event_handler.py",
        "HF411",
        "UpnpEventHandler.async_resubscribe_all",
        "The subscriptions are all read before the first is renewed.",
    ),
    Fix(
        "asyncssh",
        "2.4.2",
        "2.5.0",
        "asyncssh/sftp.py",
        "HF411",
        "SFTPServerHandler._cleanup",
        "The open files are copied before they are closed.",
    ),
    Fix(
        "channels-redis",
        "3.3.1",
        "3.4.1",
        "channels_redis/core.py",
        "HF411",
        "ConnectionPool.close_loop",
        "The connections are copied before they are closed.",
    ),
    Fix(
        "crawl4ai",
        "0.8.9",
        "0.9.5",
        "crawl4ai/browser_manager.py",
        "HF411",
        "BrowserManager.close",
        "The contexts are copied before they are closed.",
    ),
    Fix(
        "jupyter-server",
        "1.13.5",
        "1.18.1",
        "jupyter_server/gateway/managers.py",
        "HF411",
        "GatewayMappingKernelManager.shutdown_all",
        "The kernels are copied before they are shut down.",
    ),
    Fix(
        "kopf",
        "1.37.5",
        "1.45.2",
        "kopf/_core/reactor/queueing.py",
        "HF411",
        "_wait_for_depletion",
        "The streams are copied before the workers are told to end.",
    ),
    Fix(
        "livekit-agents",
        "1.0.23",
        "1.2.18",
        "livekit/agents/worker.py",
        "HF411",
        "Worker.drain",
        "The list of the processes is copied before they are joined.",
    ),
    Fix(
        "mcp",
        "1.24.0",
        "1.28.1",
        "mcp/shared/session.py",
        "HF411",
        "BaseSession._receive_loop",
        "The streams are copied before they are told of the end.",
    ),
    Fix(
        "python-telegram-bot",
        "22.1",
        "22.8",
        "telegram/ext/_application.py",
        "HF411",
        "Application.process_update",
        "The handlers are copied before they are called.",
    ),
    Fix(
        "jupyter-server",
        "1.18.1",
        "2.0.7",
        "jupyter_server/services/nbconvert/handlers.py",
        "HF421",
        "",
        "The lock is made by the handler, not by the import.",
    ),
    Fix(
        "pyrogram",
        "1.1.13",
        "1.3.7",
        "pyrogram/methods/messages/inline_session.py",
        "HF421",
        "",
        "The lock is the client's, not the module's.",
    ),
    Fix(
        "aiohttp",
        "3.9.5",
        "3.11.18",
        "aiohttp/client_reqrep.py",
        "HF501",
        "ClientRequest.write_bytes",
        "A cancellation while waiting for the go-ahead goes on to the caller.",
    ),
    Fix(
        "asyncua",
        "0.8.4",
        "0.9.98",
        "asyncua/server/internal_subscription.py",
        "HF501",
        "InternalSubscription._subscription_loop",
        "The cancellation is raised again.",
    ),
    Fix(
        "deepgram-sdk",
        "0.1.12",
        "2.0.0",
        "deepgram/transcription.py",
        "HF501",
        "LiveTranscription._receiver",
        "The loop takes errors, no cancellations.",
    ),
    Fix(
        "nats-py",
        "2.2.0",
        "2.4.0",
        "nats/aio/subscription.py",
        "HF501",
        "Subscription._drain",
        "The cancellation is raised again.",
    ),
    Fix(
        "pymodbus",
        "3.0.2",
        "3.1.3",
        "pymodbus/server/async_io.py",
        "HF501",
        "ModbusUdpServer.serve_forever",
        "The cancellation is raised again.",
    ),
    Fix(
        "python-telegram-bot",
        "21.0.1",
        "21.6",
        "telegram/ext/_application.py",
        "HF501",
        "Application._update_fetcher",
        "A cancellation ends the loop.",
    ),
    Fix(
        "uiprotect",
        "1.11.1",
        "4.2.0",
        "uiprotect/data/bootstrap.py",
        "HF501",
        "Bootstrap.refresh_device",
        "A cancellation is not taken for a failed request.",
    ),
    Fix(
        "zigpy",
        "1.3.0",
        "2.4.0",
        "zigpy/topology.py",
        "HF501",
        "Topology._scan_loop",
        "The loop's own cancellation is told from that of a scan, and raised.",
    ),
    Fix(
        "crawlee",
        "1.8.3",
        "1.11.0",
        "crawlee/events/_event_manager.py",
        "HF511",
        "EventManager.__aexit__",
        "What must be undone stands in a `finally`.",
    ),
    Fix(
        "kopf",
        "0.21",
        "1.29.2",
        "kopf/reactor/queueing.py",
        "HF512",
        "watcher",
        "The task that is shielded is held, and waited for again.",
    ),
    Fix(
        "livekit-agents",
        "1.4.6",
        "1.6.10",
        "livekit/agents/ipc/supervised_proc.py",
        "HF512",
        "SupervisedProc.start",
        "The task inside the shield is kept, so that a close can join it.",
    ),
    Fix(
        "openai-agents",
        "0.21.1",
        "0.24.0",
        "agents/extensions/experimental/codex/exec.py",
        "HF521",
        "CodexExec.run._read_stdout_line",
        "The cancelled read is joined without a time-out around it.",
    ),
    Fix(
        "saq",
        "0.23.0",
        "0.26.4",
        "saq/worker.py",
        "HF521",
        "Worker.process",
        "The time-out stands around a shield, and the job is cancelled by name.",
    ),
    Fix(
        "zigpy",
        "0.20.4",
        "0.28.2",
        "zigpy/device.py",
        "HF522",
        "Device._initialize",
        "Each waiter asks for itself: there is no shared task to cancel.",
    ),
    Fix(
        "redis",
        "7.3.1",
        "8.1.0",
        "redis/asyncio/cluster.py",
        "HF531",
        "ClusterNode.execute_pipeline",
        "The connection is given back in a `finally`.",
    ),
    Fix(
        "redis",
        "7.3.1",
        "8.1.0",
        "redis/asyncio/cluster.py",
        "HF531",
        "ClusterNode.execute_command",
        "The `try` that gives the connection back begins where it is taken.",
    ),
    Fix(
        "claude-agent-sdk",
        "0.1.48",
        "0.1.71",
        "claude_agent_sdk/_internal/query.py",
        "HF542",
        "Query.close",
        "No task group is entered in one task and left in another.",
    ),
    Fix(
        "aiokafka",
        "0.6.0",
        "0.7.2",
        "aiokafka/producer/sender.py",
        "HF604",
        "Sender._fail_all",
        "The callback asks whether the task was cancelled before it asks for its error.",
    ),
    Fix(
        "discord.py",
        "1.0.1",
        "1.2.5",
        "discord/context_managers.py",
        "HF604",
        "_typing_done_callback",
        "The callback expects the task to be cancelled.",
    ),
    Fix(
        "mautrix",
        "0.6.1",
        "0.8.18",
        "mautrix/bridge/matrix.py",
        "HF611",
        "BaseMatrixHandler.wait_for_connection",
        "The type of the error decides, not its words.",
    ),
    Fix(
        "openai-agents",
        "0.21.1",
        "0.24.0",
        "agents/extensions/experimental/codex/thread.py",
        "HF731",
        "Thread.run",
        "The generator is closed where it is left.",
    ),
)


class Unavailable(Exception):
    """A release that cannot be had, or does not have the file."""


def main() -> int:
    """Check every pair, or the chosen ones, and print the table; 1 if one is not as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="a package or a code (repeatable)"
    )
    parser.add_argument("--verbose", action="store_true", help="show what was found")
    options = parser.parse_args()
    fixes = [fix for fix in FIXES if not options.only or {fix.package, fix.code} & {*options.only}]
    if not fixes:
        parser.error(f"no such package or code: {', '.join(options.only)}")
    print(f"{'code':5} {'package':24} {'versions':19} {'function':45} {'before':10} after")
    wrong = [fix for fix in fixes if not both(fix, options.verbose)]
    families = sorted({fix.code[:3] for fix in fixes})
    print(
        f"\n{len(fixes) - len(wrong)} of {len(fixes)} as they should be, in {', '.join(families)}"
    )
    return 1 if wrong else 0


def both(fix: Fix, verbose: bool) -> bool:
    """Found before, silent after."""
    try:
        before, after = findings(fix, fix.bad), findings(fix, fix.good)
    except Unavailable as error:
        print(f"{line(fix)} {error}  <-- WRONG", flush=True)
        return False
    right = bool(before) and not after
    said = f"{how(before):10} {how(after) if after else 'silent'}"
    print(f"{line(fix)} {said}{'' if right else '  <-- WRONG'}", flush=True)
    if verbose or not right:
        print(f"    {fix.what}")
        for version, found in ((fix.bad, before), (fix.good, after)):
            for finding in found:
                print(f"    {version} {fix.path}:{finding.place.line}: {finding.message}")
    return right


def how(found: list[Finding]) -> str:
    """One word for the table: `pedantic` is found as well, but only if it is asked for."""
    if not found:
        return "missed"
    return "pedantic" if all(finding.pedantic for finding in found) else "found"


def line(fix: Fix) -> str:
    """The first columns of the table."""
    versions = f"{fix.bad} -> {fix.good}"
    return f"{fix.code:5} {fix.package:24} {versions:19} {fix.function:45}"


def findings(fix: Fix, version: str) -> list[Finding]:
    """What the checker says about the function in this version, under the code of the fix."""
    from holdfast.check import check

    path = unpacked(fix.package, version) / fix.path
    if not path.is_file():
        raise Unavailable(f"{version} has no {fix.path}")
    lines = lines_of(path, fix.function)
    report = check([path], select=[fix.code], pedantic=True)
    return [
        finding
        for finding in report.findings
        if finding.code == fix.code and finding.place.line in lines
    ]


def lines_of(path: Path, function: str) -> range:
    """Where a function stands; nowhere, if it is gone. Without a name the whole file."""
    content = path.read_bytes()
    lines = range(1, content.count(b"\n") + 2)
    body = ast.parse(content).body
    for name in function.split(".") if function else ():
        found = next((each for each in definitions(body) if each.name == name), None)
        if found is None:
            return range(0)
        body = found.body
        lines = range(found.lineno, (found.end_lineno or found.lineno) + 1)
    return lines


def definitions(
    body: list[ast.stmt],
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The classes and functions of a block, also below an `if` or a `try`."""
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        else:
            for name in ("body", "orelse", "finalbody"):
                yield from definitions(getattr(statement, name, []))


def unpacked(package: str, version: str) -> Path:
    """The folder with the Python files of this release, filled on first use."""
    target = CACHE / "unpacked" / f"{package}=={version}"
    if not target.is_dir():
        unfinished = target.with_name(target.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            unpack(download(f"{package}=={version}", folder), unfinished)
        unfinished.rename(target)
    return target


def download(wanted: str, folder: str) -> Path:
    """The archive of a release."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
    for way in WAYS:
        done = subprocess.run([*command, *way, wanted], capture_output=True, text=True, check=False)
        if not done.returncode:
            return next(Path(folder).iterdir())
    raise Unavailable(f"cannot download {wanted}: {done.stderr.strip()[-300:]}")


def unpack(archive: Path, target: Path) -> None:
    """Only the Python files; those of a source archive without the folders around the package."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target, [name for name in wheel.namelist() if name.endswith(".py")])
        return
    with tarfile.open(archive) as source:
        for member in source.getmembers():
            name = member.name.partition("/")[2].removeprefix("src/")
            if member.isfile() and name.endswith(".py"):
                member.name = name
                source.extract(member, target, filter="data")


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    sys.exit(main())
