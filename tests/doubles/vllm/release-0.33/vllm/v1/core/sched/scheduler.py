# SPDX-License-Identifier: Apache-2.0
import time

import engine


class Scheduler(engine.Scheduler):
    def schedule(self, throttle_prefills=False):
        return self.schedule_batch(lambda request: self._preempt_request(request, time.monotonic()))

    def _preempt_request(self, request, timestamp, drop_stale_output=False):
        self.preempt(request)

    def add_request(self, request):
        super().add_request(request)

    def update_from_output(self, scheduler_output, model_runner_output):
        return super().update_from_output(scheduler_output, model_runner_output)

    def finish_requests(self, request_ids, finished_status):
        return super().finish_requests(request_ids, finished_status)

    def _free_request(self, request, delay_free_blocks=False):
        super()._free_request(request)
        return None, None
