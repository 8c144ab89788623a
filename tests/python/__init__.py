# SPDX-License-Identifier: Apache-2.0
"""A package, so that its conftest is not taken for that of the end-to-end tests."""
