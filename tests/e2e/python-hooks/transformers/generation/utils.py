# SPDX-License-Identifier: Apache-2.0
class GenerationMixin:
    def generate(self, inputs=None, generation_config=None, max_new_tokens=3, before_token=None, **kwargs):
        tokens = []
        for token in range(max_new_tokens):
            if before_token:
                before_token()
            tokens.append(token)
            self._update_model_kwargs_for_generation({}, kwargs)
        return tokens

    def _update_model_kwargs_for_generation(self, outputs, model_kwargs, is_encoder_decoder=False, num_new_tokens=1):
        return model_kwargs
