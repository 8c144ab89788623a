# SPDX-License-Identifier: Apache-2.0
"""hta_analyses.py TRACE: loads a trace with HTA and runs the four analyses that are compared. Run by traces.py."""

import logging
import sys

from hta.trace_analysis import TraceAnalysis

logging.disable(logging.WARNING)


def main():
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
    print(analysis.get_temporal_breakdown(visualize=False))
    print(analysis.get_idle_time_breakdown(ranks=[0], visualize=False))
    print(analysis.get_gpu_kernel_breakdown(visualize=False))
    print(analysis.get_comm_comp_overlap(visualize=False))


if __name__ == "__main__":
    main()
