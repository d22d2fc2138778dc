/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * In place of the C library's function, as this object is preloaded. Guest RAM that is lent must be
 * sealed against writing by others, which is possible only once QEMU has mapped it. With seal=on
 * QEMU allows no further seal by then, with seal=off it creates a memfd that takes none at all.
 */
__attribute__((visibility("default"))) int memfd_create(const char *name, unsigned int flags)
{
	return syscall(SYS_memfd_create, name, flags | MFD_ALLOW_SEALING);
}
