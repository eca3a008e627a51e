/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snmp_table: the rows of the tables ifTable and ifXTable (RFC 2863): all interfaces of the
 * kernel; interfaces of the dataplane have the counters of the dataplane.
 */
#ifndef CTL_SNMP_TABLE_H
#define CTL_SNMP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/kernel_links.h"

/*
 * Counters of an interface. SNMP_NOT_COUNTED: the value is unknown, so the object does not
 * exist.
 */
#define SNMP_NOT_COUNTED UINT64_MAX
struct snmp_count {
	uint64_t in_octets, in_packets, in_multicast, in_discards, in_errors;
	uint64_t out_octets, out_packets, out_discards, out_errors;
};

struct snmp_row {
	struct kernel_link link;
	bool ours;           /* an interface of the dataplane */
	bool has_connector;  /* ifConnectorPresent */
	uint32_t mbit_per_s; /* 0: unknown */
	/* ifLastChange, in hundredths of a second; 0: before the first read */
	uint32_t changed;
	/* time when a counter last fell, as `changed`; 0: no counter has fallen */
	uint32_t restarted;
	struct snmp_count count;
};

struct snmp_table {
	const char *socket;   /* of the daemon */
	struct snmp_row *row; /* by ascending ifindex */
	unsigned int n;
	double read_s;     /* CLOCK_BOOTTIME of the last read; 0: none */
	double tried_s;    /* CLOCK_BOOTTIME of the last attempt to read */
	double ask_from_s; /* CLOCK_BOOTTIME until which requests to the daemon pause */
	/*
	 * ifCounterDiscontinuityTime of interfaces of the dataplane, unless `restarted` of
	 * the row is later: the start of the daemon, on the clock of snmpd (sysUpTime), in
	 * hundredths of a second; 0: before snmpd began.
	 */
	uint32_t discontinuity;
};

/*
 * Read the tables again if they are older than a second. Returns 0, or -errno with the
 * table as before. If the kernel's interfaces cannot be read, for example because they
 * change all the time, the old table stays valid for SNMP_KEEP_S, and the next attempt is a
 * second later.
 * While the daemon does not run, its interfaces have no counters, because
 * the counters of their TAPs cover only the few packets that the kernel handled.
 */
#define SNMP_KEEP_S 10.0
int snmp_table_refresh(struct snmp_table *t);

/*
 * Write the value of an object as snmpd's pass_persist takes it: type, newline, value,
 * newline. Returns false if there is no such object.
 *
 * table   2: ifTable, 31: ifXTable, as the number after mib-2
 * column  of the table
 */
bool snmp_value(const struct snmp_table *t, unsigned int table, unsigned int column,
		const struct snmp_row *row, char *out, size_t size);

/* Return the last column of a table. */
unsigned int snmp_columns(unsigned int table);

#endif
