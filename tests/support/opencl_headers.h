/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's headers, for tests and benchmarks. Without them a build ends with a sentence. */
#pragma once

#define CL_TARGET_OPENCL_VERSION 300

#if !__has_include(<CL/cl_icd.h>)
#error "OpenCL's headers are missing: 'tools/deps everything' installs them"
#endif
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
