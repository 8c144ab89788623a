# SPDX-License-Identifier: Apache-2.0
class GPUModelRunner:
    def __init__(self, forward):
        self.forward = forward
        self.requests = {}

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        self._execute_mm_encoder(scheduler_output)
        self.hidden = self._model_forward(scheduler_output)
        return intermediate_tensors

    def _execute_mm_encoder(self, scheduler_output):
        return []

    def _model_forward(self, input_ids=None, positions=None, intermediate_tensors=None, inputs_embeds=None,
                       **model_kwargs):
        return self.forward(input_ids)

    def sample_tokens(self, grammar_output):
        return self.hidden
