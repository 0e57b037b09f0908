"""The tree over replicas: whoever holds which part, the sums are the same sums."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unisono.job.replicas import Node, leaves, share_out, sum_order, tree_nodes


def expression(parts: list[tuple[Node, str]], replicas: int) -> list[tuple[Node, str]]:
    """Carry out a SumOrder on texts, so that the order of every addition can be read."""
    order = sum_order([node for node, _ in parts], replicas)
    stack: list[tuple[Node, str]] = []
    for part, merges in zip(parts, order.merges, strict=True):
        stack.append(part)
        for _ in range(merges):
            (_, high), right = stack.pop()
            (low, _), left = stack[-1]
            stack[-1] = ((low, high), f"({left}+{right})")
    assert tuple(node for node, _ in stack) == order.remaining
    return stack


@given(st.integers(1, 40), st.data())
def test_the_sum_has_one_bracketing_for_every_world_size(replicas: int, data: st.DataObject) -> None:
    world_size = data.draw(st.integers(1, replicas))
    alone = expression([(leaf, str(leaf[0])) for leaf in leaves(range(replicas))], replicas)
    partial = [
        part
        for block in share_out(replicas, world_size)
        for part in expression([(leaf, str(leaf[0])) for leaf in leaves(block)], replicas)
    ]
    assert expression(partial, replicas) == alone
    assert len(alone) == 1


def test_eight_replicas_make_the_perfect_tree() -> None:
    [(_, text)] = expression([(leaf, str(leaf[0])) for leaf in leaves(range(8))], 8)
    assert text == "(((0+1)+(2+3))+((4+5)+(6+7)))"


@given(st.integers(1, 100), st.data())
def test_every_replica_has_one_rank_and_blocks_are_contiguous_and_even(replicas: int, data: st.DataObject) -> None:
    world_size = data.draw(st.integers(1, replicas))
    blocks = share_out(replicas, world_size)
    assert [replica for block in blocks for replica in block] == list(range(replicas))
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    assert min(map(len, blocks)) >= 1


@given(st.integers(2, 64))
def test_the_first_replicas_tree_does_not_depend_on_how_many_follow(replicas: int) -> None:
    largest = 1 << (replicas.bit_length() - 1)
    assert largest == 1 or tree_nodes(largest).items() <= tree_nodes(replicas).items()


@given(st.integers(1, 64))
def test_the_stack_never_needs_more_buffers_than_its_depth_says(replicas: int) -> None:
    order = sum_order(leaves(range(replicas)), replicas)
    height = 0
    for merges in order.merges:
        # A part that merges at once is added into the top; only the others take a buffer.
        height += 1 if merges == 0 else 1 - merges
        assert height <= order.depth
    assert height == len(order.remaining)
