/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * This function replaces the C library's, as the object is preloaded. The card seals guest RAM
 * against writing by others, after QEMU has mapped it. With seal=on, QEMU has forbidden further
 * seals by then; with seal=off, it creates a memfd that allows none, which this function changes.
 */
__attribute__((visibility("default"))) int memfd_create(const char *name, unsigned int flags)
{
	return syscall(SYS_memfd_create, name, flags | MFD_ALLOW_SEALING);
}
