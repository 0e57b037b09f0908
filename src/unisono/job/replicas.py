"""How replicas are shared out over ranks, and the one binary tree their gradients are summed in. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Node = tuple[int, int]
"""A sub-tree: the replicas from the first number up to, not including, the second."""


def share_out(replicas: int, world_size: int) -> list[range]:
    """Contiguous blocks of replicas, one a rank; the first ranks take one more where it does not divide."""
    least, more = divmod(replicas, world_size)
    starts = [rank * least + min(rank, more) for rank in range(world_size + 1)]
    return [range(starts[rank], starts[rank + 1]) for rank in range(world_size)]


def tree_nodes(replicas: int) -> dict[Node, int]:
    """Every inner node of the tree over `replicas` leaves, with the leaf its right child starts at.

    A node of n leaves splits after the largest power of two below n, so the tree over 8 is perfect, and the tree
    over any first part of the replicas does not depend on how many follow.
    """
    nodes: dict[Node, int] = {}
    todo: list[Node] = [(0, replicas)]
    while todo:
        low, high = todo.pop()
        if high - low > 1:
            middle = low + (1 << ((high - low - 1).bit_length() - 1))
            nodes[low, high] = middle
            todo += [(low, middle), (middle, high)]
    return nodes


@dataclass(frozen=True, slots=True)
class SumOrder:
    """The order in which a sequence of neighbouring sub-trees is summed with a stack.

    Push the parts in order; after part i, add the top of the stack into the one below `merges[i]` times.
    """

    merges: tuple[int, ...]
    remaining: tuple[Node, ...]
    """The sub-trees left on the stack at the end: maximal, in order."""

    @property
    def depth(self) -> int:
        """Buffers needed when a part that merges at once is added straight into the top of the stack."""
        height = deepest = 0
        for merges in self.merges:
            height += 1 if merges == 0 else 1 - merges
            deepest = max(deepest, height)
        return deepest


def sum_order(parts: Sequence[Node], replicas: int) -> SumOrder:
    """How `parts` (neighbouring sub-trees, in order) are summed without leaving the tree's order."""
    nodes = tree_nodes(replicas)
    stack: list[Node] = []
    merges: list[int] = []
    for part in parts:
        stack.append(part)
        count = 0
        while len(stack) > 1 and nodes.get((stack[-2][0], stack[-1][1])) == stack[-1][0]:
            right = stack.pop()
            stack[-1] = (stack[-1][0], right[1])
            count += 1
        merges.append(count)
    return SumOrder(tuple(merges), tuple(stack))


def leaves(block: range) -> list[Node]:
    """The replicas of a block, each as a sub-tree of one leaf."""
    return [(replica, replica + 1) for replica in block]


def roots_of_ranks(replicas: int, world_size: int) -> list[tuple[Node, ...]]:
    """The maximal sub-trees that each rank can sum by itself, in order."""
    return [sum_order(leaves(block), replicas).remaining for block in share_out(replicas, world_size)]
