# SPDX-License-Identifier: Apache-2.0
import engine
from engine import KVCacheBlock  # noqa: F401


class BlockPool(engine.BlockPool):
    def get_new_blocks(self, num_blocks):
        return super().get_new_blocks(num_blocks)

    def _maybe_evict_cached_block(self, block):
        return super()._maybe_evict_cached_block(block)

    def touch(self, blocks):
        super().touch(blocks)

    def free_blocks(self, ordered_blocks):
        super().free_blocks(ordered_blocks)
