# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

import engine


class Scheduler(engine.Scheduler):
    """Pre-empts in schedule() itself."""

    def schedule(self):
        return self.schedule_batch(self.preempt)

    def cached_data(self, cached, resumed):
        return SimpleNamespace(
            req_ids=[request.request_id for request in cached],
            resumed_from_preemption=[request.request_id in resumed for request in cached],
            num_computed_tokens=[request.num_computed_tokens for request in cached],
        )

    def add_request(self, request):
        super().add_request(request)

    def update_from_output(self, scheduler_output, model_runner_output):
        return super().update_from_output(scheduler_output, model_runner_output)

    def finish_requests(self, request_ids, finished_status):
        return super().finish_requests(request_ids, finished_status)

    def _free_request(self, request):
        super()._free_request(request)
