/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Build the filter as classic BPF over struct seccomp_data, without a library. Its verdict
 * on most system calls depends on their number alone, so the kernel caches it and these
 * calls cost a forwarder no more than without the filter. [main]
 */
#include "start/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arch.h"

/* No kernel has this call. Its error shows a successor that the filter is present. */
#define PROBE       ARCH_SYS_NONE
#define PROBE_ERRNO EXFULL

#define CLONE_NEW_ANY                                                                  \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

/* Refused calls, grouped by their use for an attacker. */
static const uint16_t refused[] = {
/* other processes */
#ifndef __SANITIZE_ADDRESS__ /* the leak check needs this call */
	SYS_ptrace,
#endif
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_pidfd_getfd,
	SYS_kcmp,
	SYS_process_madvise,
	SYS_perf_event_open,
	SYS_lookup_dcookie,
	/* the kernel itself */
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_kexec_file_load,
	SYS_reboot,
	SYS_syslog,
	SYS_acct,
	SYS_swapon,
	SYS_swapoff,
	SYS_quotactl,
	SYS_quotactl_fd,
	SYS_vhangup,
	/* file systems and namespaces */
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_mount_setattr,
	SYS_unshare,
	SYS_open_by_handle_at,
	SYS_fanotify_init,
	/* time and names of the machine */
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_adjtimex,
	SYS_clock_adjtime,
	SYS_sethostname,
	SYS_setdomainname,
	/* keys of other processes, and interfaces with many known vulnerabilities */
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_userfaultfd,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
};

/*
 * Families of the sockets that the daemon needs: ports (PACKET, XDP), the kernel, FRR,
 * clients.
 */
static const uint16_t families[] = {AF_UNIX,    AF_INET,   AF_INET6,
				    AF_NETLINK, AF_PACKET, AF_XDP};

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define FIELD(of) offsetof(struct seccomp_data, of)
#define LOAD(at)  (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(at))
#define ANSWER(v) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (v))
#define REFUSE(e) ANSWER(SECCOMP_RET_ERRNO | (e))
#define ALLOW     ANSWER(SECCOMP_RET_ALLOW)
/* Continue with the next statement if the test is true, else skip `over` statements. */
#define IF_EQ(v, over) \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(v), 0, (over))
#define IF_ANY(v, over) \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(v), 0, (over))

#define FILTER_MAX (24 + 2 * (COUNT(refused) + COUNT(families)))

static unsigned short
filter_make(struct sock_filter f[FILTER_MAX])
{
	unsigned short n = 0;

	f[n++] = LOAD(FIELD(arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_AUDIT, 1, 0);
	f[n++] = REFUSE(EPERM);
	f[n++] = LOAD(FIELD(nr));
	/*
	 * Refuse the calls of x32 (x86-64), which are the same calls under other numbers.
	 * arm64 has no such high numbers.
	 */
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
	f[n++] = REFUSE(EPERM);
	for (unsigned int i = 0; i < COUNT(refused); i++) {
		f[n++] = IF_EQ(refused[i], 1);
		f[n++] = REFUSE(EPERM);
	}
	f[n++] = IF_EQ(PROBE, 1);
	f[n++] = REFUSE(PROBE_ERRNO);
	/* A filter cannot see the flags of clone3(2); with ENOSYS libc uses clone(2). */
	f[n++] = IF_EQ(SYS_clone3, 1);
	f[n++] = REFUSE(ENOSYS);
	f[n++] = IF_EQ(SYS_clone, 4);
	f[n++] = LOAD(FIELD(args[0]));
	f[n++] = IF_ANY(CLONE_NEW_ANY, 1);
	f[n++] = REFUSE(EPERM);
	f[n++] = ALLOW;
	f[n++] = IF_EQ(SYS_setns, 4);
	f[n++] = LOAD(FIELD(args[1]));
	f[n++] = IF_EQ(CLONE_NEWNET, 1);
	f[n++] = ALLOW;
	f[n++] = REFUSE(EPERM);
	f[n++] = IF_EQ(SYS_socket, 2 * COUNT(families) + 2);
	f[n++] = LOAD(FIELD(args[0]));
	for (unsigned int i = 0; i < COUNT(families); i++) {
		f[n++] = IF_EQ(families[i], 1);
		f[n++] = ALLOW;
	}
	f[n++] = REFUSE(EAFNOSUPPORT);
	f[n++] = ALLOW;
	return n;
}

int
syscalls_refuse(void)
{
	struct sock_filter f[FILTER_MAX];
	struct sock_fprog prog = {.filter = f};

	/* A successor inherits the filter. Do not add another filter at each restart. */
	if (syscall(PROBE, 0) < 0 && errno == PROBE_ERRNO)
		return 0;
	prog.len = filter_make(f);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0 ? -errno : 0;
}
