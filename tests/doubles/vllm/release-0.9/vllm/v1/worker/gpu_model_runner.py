# SPDX-License-Identifier: Apache-2.0
class GPUModelRunner:
    def __init__(self, forward):
        self.forward = forward
        self.requests = {}

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        for new in scheduler_output.scheduled_new_reqs:
            self.requests[new.req_id] = new
        self._execute_mm_encoder(scheduler_output)
        return self.forward(scheduler_output)

    def _execute_mm_encoder(self, scheduler_output):
        pass
