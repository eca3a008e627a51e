/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plug-in that tries, inside the daemon, the system calls that no driver needs. It tries
 * each when it is loaded and prints the error to stderr: "overstep NAME ERRNO". A call that
 * is allowed has no effect, because its arguments are invalid.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
told(const char *name, long rc)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "overstep %s %d\n", name, rc < 0 ? errno : 0);

	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

#define TRY(name, ...) told(#name, syscall(SYS_##name, __VA_ARGS__))

__attribute__((constructor)) static void
overstep(void)
{
	int net = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int mnt = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);

	TRY(process_vm_readv, -1, NULL, 0ul, NULL, 0ul, 0ul);
	TRY(perf_event_open, NULL, -1, -1, -1, 0ul);
	TRY(init_module, NULL, 0ul, "");
	TRY(finit_module, -1, "", 0);
	TRY(kexec_load, 0ul, 0ul, NULL, 0ul);
	TRY(reboot, 0, 0, 0, NULL);
	TRY(mount, NULL, "/nowhere/at/all", NULL, 0ul, NULL);
	TRY(umount2, "/nowhere/at/all", 0);
	TRY(chroot, "/nowhere/at/all");
	TRY(unshare, 0);
	TRY(clock_settime, -1, NULL);
	TRY(keyctl, -1, 0ul, 0ul, 0ul, 0ul);
	TRY(io_uring_setup, 0, NULL);
	TRY(userfaultfd, -1);
	TRY(clone3, NULL, 0ul);
	TRY(clone, (unsigned long)(CLONE_NEWUSER | CLONE_FS), NULL, NULL, NULL, 0ul);
	TRY(setns, mnt, CLONE_NEWNS);
	TRY(setns, net, CLONE_NEWNET); /* the namespace flag that a daemon uses */
	told("socket_alg", socket(38, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	told("socket_packet", socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	close(net);
	close(mnt);
}
