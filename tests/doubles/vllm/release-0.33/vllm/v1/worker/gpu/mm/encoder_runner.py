# SPDX-License-Identifier: Apache-2.0
class EncoderRunner:
    def execute_mm_encoder(self, mm_kwargs):
        return mm_kwargs
