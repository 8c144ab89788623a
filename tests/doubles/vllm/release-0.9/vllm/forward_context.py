# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

context = SimpleNamespace(skip_cuda_graphs=False)


def get_forward_context():
    return context
