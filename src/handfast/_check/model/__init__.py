"""From source to facts: what the rules know about the functions, classes and tasks of a file.

The theory, in four words:

- A **root** is where a value comes from: `self._task`, a parameter, a name of the module, or `f()` for
  the result of a call. `Function.roots` follows assignments, loops and unpacking, and counts the
  elements of a container as the container. After `for t in list(self._tasks): ...`, the root of `t` is
  `self._tasks`. Attributes of other objects have the root of the object.
- An **operation** is one thing that a function does to a root: cancel, join, put, take, clear, read,
  use, close, signal. `t.cancel()` in that loop is the operation (cancel, `self._tasks`).
- An **effect** is an operation as seen by a function that does it or calls what does it. If `close`
  calls `self._stop()`, and that has the operation, `close` has the effect (cancel, `self._tasks`) at
  the call. Parameters become the roots of the arguments, and `self.m` is looked up in the class that
  is checked, so that overriding methods count.
- A **step** is a node of the control flow graph. Rules ask for paths between the steps of effects:
  HF303 reports a cancel of a task that no join follows, HF301 a clear from which a path leads to a
  cancel.

All of it approximates without types. It errs on one side: a root too many, a path too many, an
operation that may not happen. A rule is built so that such errors make it silent: it needs a fact to
be absent on every path ("nothing joins the task") or evidence from two places. What is not known (a
base class in another package, a parameter) is never evidence.

    vocabulary      names of methods, by what they mean
    syntax/         nodes, names, functions, classes, modules; call graph and control flow graph
    operations/     operations and effects; containers, guards, locks, teardown
    tasks/          where tasks are created, held, awaited and ended
    threads/        which functions run on threads, which objects belong to asyncio

`syntax` imports nothing of the others but the vocabulary, and the rules are the only users of all.
"""
