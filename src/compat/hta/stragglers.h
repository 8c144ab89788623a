/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's stragglers: collectives are kernels of NCCL before 2.18 on other streams than the first,
 * and two ranks are late in each step.
 */
#pragma once

#include "analyses/program/ranks.h"

extern const struct rank_definition hta_stragglers;
