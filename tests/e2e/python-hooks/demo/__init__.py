# SPDX-License-Identifier: Apache-2.0
"""A framework for hooks to be put into."""
