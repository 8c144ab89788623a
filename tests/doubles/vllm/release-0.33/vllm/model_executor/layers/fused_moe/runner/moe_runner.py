# SPDX-License-Identifier: Apache-2.0
class MoERunner:
    def __init__(self, layer_name, router):
        self.layer_name = layer_name
        self.router = router

    def _forward_impl(self, hidden_states, router_logits, shared_experts_input, input_ids=None):
        return self.router.select_experts(hidden_states=hidden_states, router_logits=router_logits, input_ids=input_ids)
