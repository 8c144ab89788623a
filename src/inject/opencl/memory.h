/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of images, rectangles, migrations and the like: for the layer's table. In stacks they
 * have the names of the calls that they stand for; the library does not export them.
 */
#pragma once

#include "inject/opencl/abi.h"

cl_read_buffer_rect opencl_read_buffer_rect __asm__("clEnqueueReadBufferRect");
cl_write_buffer_rect opencl_write_buffer_rect __asm__("clEnqueueWriteBufferRect");
cl_copy_buffer_rect opencl_copy_buffer_rect __asm__("clEnqueueCopyBufferRect");
cl_read_image opencl_read_image __asm__("clEnqueueReadImage");
cl_write_image opencl_write_image __asm__("clEnqueueWriteImage");
cl_fill_image opencl_fill_image __asm__("clEnqueueFillImage");
cl_copy_image opencl_copy_image __asm__("clEnqueueCopyImage");
cl_copy_image_to_buffer opencl_copy_image_to_buffer __asm__("clEnqueueCopyImageToBuffer");
cl_copy_buffer_to_image opencl_copy_buffer_to_image __asm__("clEnqueueCopyBufferToImage");
cl_map_image opencl_map_image __asm__("clEnqueueMapImage");
cl_migrate opencl_migrate __asm__("clEnqueueMigrateMemObjects");
cl_svm_migrate opencl_svm_migrate __asm__("clEnqueueSVMMigrateMem");
cl_svm_free opencl_svm_free __asm__("clEnqueueSVMFree");
cl_native_kernel opencl_native_kernel __asm__("clEnqueueNativeKernel");
