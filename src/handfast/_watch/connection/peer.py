"""Which user is at the other end of a Unix socket, as the kernel says."""

from __future__ import annotations

import os
import socket
import struct
import sys

# <sys/un.h> of macOS and FreeBSD; the level is 0 there.
_LOCAL_PEERCRED = 1
_XUCRED = struct.Struct("=II")


def uid_of_peer(connected: socket.socket) -> int | None:
    """The user of the process at the other end; None if the system does not say."""
    try:
        if sys.platform == "linux":
            _, uid, _ = struct.unpack(
                "3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            )
            return int(uid)
        if sys.platform == "darwin" or sys.platform.startswith("freebsd"):
            # struct xucred { u_int cr_version; uid_t cr_uid; ... }
            answer = connected.getsockopt(0, _LOCAL_PEERCRED, 128)
            version, uid = _XUCRED.unpack_from(answer)
            return int(uid) if version == 0 else None
    except (OSError, struct.error):
        return None
    return None


def is_own(connected: socket.socket) -> bool:
    """Whether the peer is a process of this user. Nobody else is served, root neither."""
    return uid_of_peer(connected) == os.getuid()
