# SPDX-License-Identifier: Apache-2.0
class Trainer:
    def training_step(self, model, inputs, num_items_in_batch=None):
        return (model, inputs, num_items_in_batch)

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        return (model, inputs, prediction_loss_only)
