"""What is shown of a `Snapshot`. A view takes snapshots and returns text; none talks to a process.

    table      one process as a table of places, and the list of processes
    tree       loops, scopes, tasks, and the tasks that they await
    why        where the tasks of a place wait, through the tasks that they await
    diff       what is new, gone, or more than before
    page       one self-contained HTML page, from `page.html`
    screen     `handfast top`, with textual

    place_rows the rows of the places, those with a finding first
    task_tree  the tree as rows, before it is drawn
    cells      numbers, ages and names in a few characters

A snapshot may come from a file that somebody else wrote: `cells.printable` makes each text of it safe
to print.
"""
