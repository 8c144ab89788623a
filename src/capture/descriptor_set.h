/* SPDX-License-Identifier: Apache-2.0 */
/* The FileDescriptorSet of sonde.proto, generated when building (schema/meson.build). */
#pragma once

#include <stddef.h>

extern const unsigned char capture_descriptor_set[];
extern const size_t capture_descriptor_set_length;
