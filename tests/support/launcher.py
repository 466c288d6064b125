"""`launcher.py SOCKET WORD…` is `python WORD…`, forked by fork_server.py if it runs one of our programs."""

import _socket  # `socket` and `json` take longer to import than all of this takes.
import os
import signal
import struct
import sys

# Ours, and the server that the tests of the client start most.
PROGRAMS = ("ragchat", "ragmemory", "tests.support.mcp_server")
# Asks for SIGKILL, which cannot be passed on.
KILL = signal.SIGUSR1
# What the program gets for each signal that we get.
PASSED_ON = {number: number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
PASSED_ON[KILL] = signal.SIGKILL


def launch(address: str, words: list[str]) -> int:
    """Have it forked with our streams, pass signals on, and wait for it. Returns its status."""
    # Who has read what the program prints may signal it, before we know its id.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    server = _socket.socket(_socket.AF_UNIX)
    server.connect(address)
    variables = (f"{name}={value}" for name, value in os.environ.items())
    request = os.fsencode("\0".join((os.getcwd(), str(len(words)), *words, *variables, "")))  # noqa: PTH109
    streams = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("3i", 0, 1, 2))
    sent = server.sendmsg([struct.pack("!I", len(request)) + request], [streams])
    server.sendall(request[sent - 4 :])
    # Who reads its output must see the end of it when the program ends, or closes it.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    answers = os.fdopen(server.fileno(), "rb", closefd=False)
    pid = int(answers.readline())

    def pass_on(number: int, _frame: object) -> None:
        try:
            os.kill(pid, PASSED_ON[signal.Signals(number)])
        except ProcessLookupError:  # It has ended, and its status is on the way.
            return

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    return int(answers.readline())


def main() -> None:
    address, words = sys.argv[1], sys.argv[2:]
    if not ("-m" in words and words[words.index("-m") + 1] in PROGRAMS):
        os.execv(sys.executable, [sys.executable, *words])
    status = launch(address, words)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) in PASSED_ON:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
