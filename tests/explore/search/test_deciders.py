"""PCT, POS, SURW and the random walk: what each answers is fixed by the plan, and goes by its paper."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Sequence

import pytest

from handfast._explore.loop.stepping import Decider
from handfast._explore.search.deciders import (
    Diverged,
    Follow,
    Mutated,
    Pct,
    Pos,
    RandomWalk,
    Uniform,
    decider,
)
from handfast._explore.search.plan import Plan, Settings, Tail
from handfast._explore.search.run import run
from tests.explore.search.planted_bugs import between_two_answers

TAILS: tuple[Tail, ...] = ("random", "pct", "pos", "surw", "mutate")
ANYTIME = Settings(model="latency", stall=0.0)


def threads(decides: Decider, steps: dict[str, int], kind: str = "arrive") -> str:
    """Threads with so many steps each, run one by one as the decider says."""
    left = dict(steps)
    order = ""
    while left:
        runnable = list(left)
        answer = decides.choose(kind, len(left), lambda: list(left)) if len(left) > 1 else 0
        name = runnable[answer]
        order += name
        left[name] -= 1
        if not left[name]:
            del left[name]
    return order


@pytest.mark.parametrize("tail", TAILS)
def test_the_answers_are_a_function_of_the_plan(tail: Tail) -> None:
    plan = Plan(tail=tail, seed=7, length=9)
    steps = {"a": 3, "b": 3, "c": 3}
    assert threads(decider(plan), steps) == threads(decider(plan), steps)
    assert len({threads(decider(Plan(tail=tail, seed=n)), steps) for n in range(20)}) > 5


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("kind", ["arrive", "between", "timers", "late", "chunk"])
def test_every_kind_of_point_gets_every_answer(tail: Tail, kind: str) -> None:
    said = Counter(
        decider(Plan(tail=tail, seed=seed)).choose(kind, 3, lambda: ["x", "y", "z"])
        for seed in range(200)
    )
    assert set(said) == {0, 1, 2}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("kind", ["timers", "late"])
def test_a_run_is_not_all_lateness(tail: Tail, kind: str) -> None:
    decides = decider(Plan(tail=tail, seed=1))
    said = [decides.choose(kind, 4, lambda: ["soon", 1, 2, 3]) for _ in range(400)]
    assert 150 < said.count(0) < 250


def test_pct_lets_the_highest_priority_go_until_it_ends() -> None:
    for seed in range(30):
        order = threads(Pct(seed, 100, depth=1), {"a": 3, "b": 3, "c": 3})
        assert sorted(order[::3]) == ["a", "b", "c"]
        assert order == "".join(name * 3 for name in order[::3])


def test_pct_draws_its_depth_from_two_to_four() -> None:
    assert Counter(Pct(seed).depth for seed in range(300)).keys() == {2, 3, 4}


def test_pct_drops_the_running_one_below_all_others_at_a_change_point() -> None:
    """One point of change means at most one thread that is interrupted."""
    seen = set()
    for seed in range(200):
        order = threads(Pct(seed, 5, depth=2), {"a": 3, "b": 3})
        seen.add(order)
        assert sum(x != y for x, y in itertools.pairwise(order)) <= 2
    assert {"aaabbb", "abbbaa", "aabbba", "baaabb", "bbaaab", "bbbaaa"} <= seen


def test_pct_finds_a_bug_of_depth_two_as_often_as_promised() -> None:
    """1 / (n * k) for n threads and k points; the bug needs b between the two steps of a."""
    steps = {"a": 2, "b": 1, "c": 2, "d": 2}
    points = sum(steps.values()) - 1
    tries = 2_000
    found = 0
    for seed in range(tries):
        order = threads(Pct(seed, points, depth=2), steps)
        first, second = (at for at, name in enumerate(order) if name == "a")
        found += first < order.index("b") < second
    assert found >= tries / (len(steps) * points)


def test_pct_finds_the_bug_of_depth_two_in_a_program_as_often_as_promised() -> None:
    length = len(run(between_two_answers, Plan(observe=True), ANYTIME).points)
    actors = 3  # a, b, and the loop that lets nothing come yet
    tries = 300
    found = sum(
        run(between_two_answers, Plan(), ANYTIME, decides=Pct(seed, length, depth=2)).verdict
        is not None
        for seed in range(tries)
    )
    assert found >= tries / (actors * length)


def test_pos_keeps_the_priority_of_an_actor_that_waits() -> None:
    """Basic form: the order of pending events is a random permutation, each as likely."""
    steps = dict.fromkeys("abc", 1)
    said = Counter(threads(Pos(seed, races=0.0), steps) for seed in range(3_000))
    assert len(said) == 6
    assert all(400 < count < 600 for count in said.values())


def test_pos_draws_again_for_those_that_race() -> None:
    """Without memory the one that waits is as likely as any other each time: 1/2 * 1/2 * 1/2; with
    memory it waits for long if its priority is low: 1/4."""
    steps = {"a": 1, "b": 3}
    tries = 4_000
    last = {
        races: sum(threads(Pos(seed, races=races), steps).endswith("a") for seed in range(tries))
        for races in (0.0, 1.0)
    }
    assert tries / 4 * 0.9 < last[0.0] < tries / 4 * 1.1
    assert tries / 8 * 0.9 < last[1.0] < tries / 8 * 1.1


def test_actors_of_one_name_are_distinguished() -> None:
    for decides in (Pct, Pos, Uniform):
        said = {decides(seed).choose("arrive", 3, lambda: ["_come"] * 3) for seed in range(50)}
        assert said == {0, 1, 2}


def test_pos_and_the_random_walk_find_different_bugs() -> None:
    names = "abcdefg"
    steps = dict.fromkeys(names, 1)
    walks = [threads(RandomWalk(seed), steps) for seed in range(400)]
    samples = [threads(Pos(seed), steps) for seed in range(400)]
    # The first of the plain order must come last, for which it has to lose each single time.
    assert sum(order.endswith("a") for order in samples) > 20
    assert sum(order.endswith("a") for order in walks) < 12
    # Everything in the plain order but for one late swap.
    assert "abcdegf" in walks
    assert "abcdegf" not in samples


def test_surw_draws_every_order_as_often_as_any_other() -> None:
    steps = {"a": 3, "b": 1}
    tries = 2_000
    orders = Counter(threads(Uniform(seed, tuple(steps.items())), steps) for seed in range(tries))
    assert set(orders) == {"aaab", "aaba", "abaa", "baaa"}
    assert all(tries / 4 * 0.85 < count < tries / 4 * 1.15 for count in orders.values())
    walks = Counter(threads(RandomWalk(seed), steps) for seed in range(tries))
    assert max(walks.values()) > 2 * min(walks.values())


def test_surw_selects_all_actors_or_some_and_the_others_go_at_any_time() -> None:
    steps = {"a": 2, "b": 2, "c": 2}
    orders = {threads(Uniform(seed, tuple(steps.items())), steps) for seed in range(2_000)}
    assert len(orders) == 90  # 6! / (2! * 2! * 2!)


def test_surw_lets_the_loop_run_until_the_actor_whose_turn_it_is_has_come() -> None:
    decides = Uniform(0, (("a", 1_000_000), ("b", 1)))
    said = [decides.choose("arrive", 2, lambda: ["", "b"]) for _ in range(20)]
    assert said == [0] * 20
    assert decides.choose("arrive", 1, lambda: ["b"]) == 0  # nothing else can happen


def test_surw_knows_actors_that_the_plain_run_did_not_have() -> None:
    for counts in ((), (("a", 0), ("b", 0))):
        said = {Uniform(n, counts).choose("arrive", 2, lambda: ["a", "new"]) for n in range(50)}
        assert said == {0, 1}


def test_a_changed_copy_is_the_run_itself_but_for_a_stretch_or_its_rest() -> None:
    parent = tuple((n, 1 + n % 2) for n in range(30))
    same, ends = Counter[int](), 0
    for seed in range(300):
        copy = Mutated(parent, seed, 30)
        answers = [copy.choose("arrive", 3, lambda: "abc") for _ in range(30)]
        changed = [n for n, answer in parent if answers[n] != answer]
        same[len(changed)] += 1
        ends += bool(changed) and changed[-1] > 25
    assert sum(same[n] for n in range(1, 6)) > 100  # a stretch
    assert ends > 75  # the rest
    assert Mutated(parent, 0, 30).choose("arrive", 2, lambda: "ab") < 2


def test_a_plan_gives_its_answers_and_then_the_plain_one() -> None:
    follow = Follow(((1, 2), (3, 9)))
    assert [follow.choose("arrive", 3, lambda: "abc") for _ in range(5)] == [0, 2, 0, 0, 0]


def test_a_plan_that_does_not_fit_names_the_choice() -> None:
    follow = Follow(((1, 2),), {(1, 2): 3})
    assert follow.choose("arrive", 2, lambda: "ab") == 0
    with pytest.raises(Diverged, match=r"choice 1 \(timers\) has 2 answers, and had 3 before"):
        follow.choose("timers", 2, lambda: "ab")


def test_a_task_that_asks_outside_again_is_the_same_actor() -> None:
    seen: list[Sequence[Hashable]] = []

    class Listening:
        def choose(self, kind: str, options: int, actors: object) -> int:
            assert callable(actors)
            seen.append(actors())
            return options - 1

    run(between_two_answers, Plan(), ANYTIME, decides=Listening())
    names = {actor for actors in seen for actor in actors}
    assert len([actor for actor in names if isinstance(actor, tuple) and actor[0] == "a"]) == 1
