"""The socket between the watched process and the commands.

socket_folder       the folder, its mode, stale sockets
process_start       tells two processes with one id apart
peer                the user at the other end
protocol, encode    frames; a snapshot as JSON in parts
server, client      the two ends
live_reader         reads a process again and again, for the screen
"""
