# SPDX-License-Identifier: Apache-2.0
"""A test double of vLLM 0.33: its names and signatures; the behaviour is in engine.py."""
