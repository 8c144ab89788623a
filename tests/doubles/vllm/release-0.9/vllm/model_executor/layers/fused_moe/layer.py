# SPDX-License-Identifier: Apache-2.0
import torch


class FusedMoE:
    def __init__(self, prefix, top_k):
        self.layer_name = prefix
        self.top_k = top_k

    @staticmethod
    def select_experts(hidden_states, router_logits, top_k, use_grouped_topk, renormalize, topk_group=None,
                       num_expert_group=None, custom_routing_function=None, scoring_func="softmax",
                       e_score_correction_bias=None, indices_type=None, enable_eplb=False, expert_map=None,
                       expert_load_view=None, logical_to_physical_map=None, logical_replica_count=None):
        return torch.softmax(router_logits, -1).topk(top_k)

    def forward_impl(self, hidden_states, router_logits):
        return FusedMoE.select_experts(hidden_states=hidden_states, router_logits=router_logits, top_k=self.top_k,
                                       use_grouped_topk=False, renormalize=False)
