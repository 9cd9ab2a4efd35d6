/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails to compile if today's header has moved what version 0.2 has pinned.
 */
#include "tegula/tegula.h"

#include "pinned_abi.h"

extern const int abi_is_pinned;
const int abi_is_pinned = 1;
