# SPDX-License-Identifier: Apache-2.0
from abc import ABC, abstractmethod


class FusedMoERouter(ABC):
    @abstractmethod
    def _select_experts(self, hidden_states, router_logits, topk_indices_dtype=None, *, input_ids=None):
        raise NotImplementedError

    def select_experts(self, hidden_states, router_logits, topk_indices_dtype=None, *, input_ids=None):
        return self._select_experts(hidden_states, router_logits, topk_indices_dtype=topk_indices_dtype,
                                    input_ids=input_ids)
