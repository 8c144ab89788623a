# SPDX-License-Identifier: Apache-2.0
import torch

from vllm.model_executor.layers.fused_moe.router.fused_moe_router import FusedMoERouter


class BaseRouter(FusedMoERouter):
    def __init__(self, top_k, global_num_experts, eplb_state=None):
        self.top_k = top_k
        self.global_num_experts = global_num_experts
        self.eplb_state = eplb_state

    def _select_experts(self, hidden_states, router_logits, topk_indices_dtype=None, *, input_ids=None):
        return torch.softmax(router_logits, -1).topk(self.top_k)
