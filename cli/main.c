/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `tegula`: finds the command and runs it.
 */
#include "tegula/tegula.h"

#include <stdio.h>

int main(void)
{
    printf("tegula %s\n", tgl_version());
    return 0;
}
