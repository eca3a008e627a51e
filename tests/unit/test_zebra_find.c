/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl finds the zebra of the control namespace, and the vtysh command for it. A folder
 * stands for /, and a thread takes the place of the daemon.
 *
 * link: fpm-dataplane/ctl/hop_push.c
 * link: fpm-dataplane/base/sysfs.c
 * link: fpm-dataplane/ctl/zebra.c fpm-dataplane/ctl/zebra_find.c fpm-dataplane/ctl/run.c
 * link: fpm-dataplane/ctl/frr_version.c fpm-dataplane/ctl/hops_text.c
 * link: fpm-dataplane/ctl/doctor/exam.c fpm-dataplane/ctl/doctor/parse.c fpm-dataplane/pci/
 * link: fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/text.c fpm-dataplane/ctl/conn.c
 * link: fpm-dataplane/ctl/cli.c fpm-dataplane/base/edit_distance.c
 * link: fpm-dataplane/base/prefix.c fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/zebra.h"
#include "daemon_fake.h"
#include "root_fake.h"

/* The octets of a string constant, with its last zero: a command line of /proc. */
#define WORDS(text) text, sizeof(text)

static struct exam e;

static void
process_is(unsigned int pid, const char *net, const char *mnt, const char *words,
	   size_t len)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	root_put_octets(path, words, len);
	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	root_put_link(path, net);
	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	root_put_link(path, mnt);
}

static int
setup(void **state)
{
	if (root_make() < 0 || fake_daemon_open() < 0)
		return -1;
	e = (struct exam){.root = root, .version = json_object()};
	root_put_link("/proc/self/ns/net", "net:[1]");
	root_put_link("/proc/self/ns/mnt", "mnt:[1]");
	process_is(12, "net:[1]", "mnt:[1]", WORDS("bash"));
	root_put_octets("/proc/meminfo", "zebra", 6);
	root_put_octets("/proc/x9/cmdline", "zebra", 6);
	return 0;
}

static int
teardown(void **state)
{
	json_decref(e.version);
	return fake_daemon_close() < 0 ? -1 : root_remove();
}

/* Search again. */
static pid_t
found(void)
{
	e.looked = false;
	e.zebra = 0;
	e.zebra_loads = e.zebra_listens = false;
	zebra_find(&e);
	return e.zebra;
}

static void
zebra_is_a_process_of_our_namespace(void **state)
{
	assert_int_equal(found(), 0);
	process_is(30, "net:[2]", "mnt:[1]", WORDS("/usr/lib/frr/zebra\0-d"));
	assert_int_equal(found(), 0);
	process_is(40, "net:[1]", "mnt:[1]", WORDS("/usr/lib/frr/zebra\0-d"));
	assert_int_equal(found(), 40);
	assert_false(e.zebra_loads || e.zebra_listens);
	/* The search is not repeated. */
	e.zebra = 7;
	zebra_find(&e);
	assert_int_equal(e.zebra, 7);
	/* Without a daemon the namespace is unknown, and the first zebra counts. */
	json_decref(e.version);
	e.version = NULL;
	assert_int_equal(found(), 30);
	e.deny = "no access";
	assert_int_equal(found(), 0);
}

static void
of_several_zebras_the_one_with_our_module_counts(void **state)
{
	process_is(30, "net:[1]", "mnt:[1]",
		   WORDS("zebra\0-A\0"
			 "127.0.0.1"));
	process_is(40, "net:[1]", "mnt:[1]",
		   WORDS("zebra\0-M\0dplane_fpm_nl\0--asic-offload=notify_on_offload"));
	process_is(50, "net:[1]", "mnt:[1]", WORDS("zebra\0-M\0snmp"));
	assert_int_equal(found(), 40);
	assert_true(e.zebra_loads);
	assert_true(e.zebra_listens);
	process_is(40, "net:[1]", "mnt:[1]", WORDS("zebra\0-M\0dplane_fpm_nl"));
	assert_int_equal(found(), 40);
	assert_true(e.zebra_loads);
	assert_false(e.zebra_listens);
}

/* Return the command for a zebra with this command line. */
static const char *
command_for(const char *mnt, const char *words, size_t len)
{
	process_is(40, "net:[1]", mnt, words, len);
	assert_int_equal(found(), 40);
	return zebra_vtysh(&e);
}

static void
vtysh_gets_the_options_that_lead_to_zebra(void **state)
{
	assert_string_equal(zebra_vtysh(&e), "vtysh"); /* there is no zebra */
	assert_string_equal(command_for("mnt:[1]", WORDS("zebra\0-d")), "vtysh");
	assert_string_equal(command_for("mnt:[1]", WORDS("zebra\0-N\0blue")),
			    "vtysh -N blue");
	assert_string_equal(command_for("mnt:[2]", WORDS("zebra\0--pathspace\0blue\0-d")),
			    "vtysh -N blue");
	assert_string_equal(
		command_for("mnt:[1]", WORDS("zebra\0-d\0--vty_socket\0/run/x")),
		"vtysh --vty_socket /run/x");
	/*
	 * vtysh gets no option if zebra's option has no value, or a value that the command
	 * cannot have.
	 */
	assert_string_equal(command_for("mnt:[1]", WORDS("zebra\0-N")), "vtysh");
	assert_string_equal(command_for("mnt:[1]", WORDS("zebra\0-N\0a b")), "vtysh");
	/* zebra has the files of another mount namespace. */
	assert_string_equal(command_for("mnt:[2]", WORDS("zebra\0-d")),
			    "vtysh --vty_socket /proc/40/root/run/frr");
	e.vtysh = "sh x";
	assert_string_equal(zebra_vtysh(&e), "sh x");
}

/* Return the command for the daemon that gives this row of `show version`. */
static const char *
command_of_daemon(const char *row, char *said, size_t size)
{
	char answer[256];
	const char *command;
	FILE *err = stderr;

	snprintf(answer, sizeof(answer), "%s\n{\"end\":true}\n", row);
	fake_daemon_answer(answer);
	stderr = fmemopen(said, size, "w");
	command = zebra_vtysh_of(fake_daemon.path);
	fclose(stderr);
	stderr = err;
	fake_daemon_end();
	assert_string_equal(fake_daemon.asked, "{\"show\":\"version\"}\n");
	return command;
}

static void
the_daemon_names_the_namespace(void **state)
{
	char row[64], said[512] = "", version[FRR_VERSION_STRLEN] = "";
	FILE *err = stderr;
	json_t *daemon;

	/* The namespace of this process, whether it has a zebra or not. */
	snprintf(row, sizeof(row), "{\"pid\":%d,\"control_netns\":\"\"}", (int)getpid());
	assert_non_null(command_of_daemon(row, said, sizeof(said)));
	assert_string_equal(said, "");
	strcpy(row, "{\"control_netns\":\"fdp-none\"}");
	assert_null(command_of_daemon(row, said, sizeof(said)));
	assert_string_equal(said, "fpmctl: cannot enter the network namespace of the TAPs "
				  "(/run/netns/fdp-none): No such file or directory\n");
	daemon = json_loads(row, 0, NULL);
	assert_int_equal(zebra_version_of(daemon, version), 0);
	assert_string_equal(version, "");
	json_decref(daemon);
	stderr = fmemopen(said, sizeof(said), "w");
	assert_null(zebra_vtysh_of("/tmp/fdp-none/sock"));
	fclose(stderr);
	stderr = err;
	assert_non_null(strstr(said, "no daemon answers on /tmp/fdp-none/sock"));
	assert_null(strstr(said, "cannot enter"));
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(zebra_is_a_process_of_our_namespace),
		test(of_several_zebras_the_one_with_our_module_counts),
		test(vtysh_gets_the_options_that_lead_to_zebra),
		test(the_daemon_names_the_namespace),
	};

	return cmocka_run_group_tests_name("zebra_find", tests, NULL, NULL);
}
