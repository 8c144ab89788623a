# SPDX-License-Identifier: Apache-2.0
class GPUModelRunner:
    def execute_model(self, scheduler_output, intermediate_tensors=None, dummy_run=False, skip_attn_for_dummy_run=False,
                      is_profile=False, context_len=0, valid_dummy_state_slots=False, randomize_inputs=False):
        return dummy_run

    def sample_tokens(self, grammar_output):
        return None
