/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse the names of devices. Only keys of a bond whose effect is known are accepted,
 * because DPDK's parser also accepts a bond of one NIC or of no NIC, and modes that are not
 * tested here. No thread of its own.
 */
#include "pci/devargs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/errmsg.h"

#define NAME "net_bonding"

bool
device_address(const char *text, char out[DEVICE_ADDRESS_STRLEN])
{
	unsigned int domain, bus, slot, function;
	int n = 0;

	if (sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &n) != 4) {
		domain = 0;
		n = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &slot, &function, &n) != 3)
			return false;
	}
	if ((text[n] != '\0' && text[n] != ',') || slot > 0x1f || function > 7)
		return false;
	snprintf(out, DEVICE_ADDRESS_STRLEN, "%04x:%02x:%02x.%x", domain & 0xffff,
		 bus & 0xff, slot, function);
	return true;
}

bool
device_makes_iface(const char *device)
{
	return strncmp(device, "net_vhost", 9) == 0 || strncmp(device, "net_tap", 7) == 0;
}

bool
device_is_bond(const char *device)
{
	return strncmp(device, NAME, strlen(NAME)) == 0;
}

const char *
device_bond_mode(enum bond_mode mode)
{
	return mode == BOND_LACP ? "802.3ad" : "active-backup";
}

/* Return the index of the member with this address; n_member: none. */
static unsigned int
member_find(const struct device_bond *bond, const char *address)
{
	unsigned int i = 0;

	while (i < bond->n_member && strcmp(bond->member[i], address) != 0)
		i++;
	return i;
}

static int
take_member(struct device_bond *bond, const char *value, char *why, size_t why_size)
{
	char address[DEVICE_ADDRESS_STRLEN];

	if (!device_address(value, address))
		return why_not(
			why, why_size, -EINVAL,
			"'%s' cannot be a member; expected the PCI address of a NIC. A "
			"port of the kernel's interfaces is net_af_packet,iface=bond0, "
			"with bond0 a bond of the kernel",
			value);
	if (member_find(bond, address) < bond->n_member)
		return why_not(why, why_size, -EINVAL, "%s is a member twice", address);
	if (bond->n_member == BOND_MEMBERS_MAX)
		return why_not(why, why_size, -EINVAL,
			       "has too many members; expected at most %u",
			       BOND_MEMBERS_MAX);
	memcpy(bond->member[bond->n_member++], address, sizeof(address));
	return 0;
}

static int
take_mode(struct device_bond *bond, const char *value, char *why, size_t why_size)
{
	if (strcmp(value, "1") == 0)
		bond->mode = BOND_ACTIVE_BACKUP;
	else if (strcmp(value, "4") == 0)
		bond->mode = BOND_LACP;
	else
		return why_not(
			why, why_size, -EINVAL,
			"mode=%s is not supported; expected mode=1 (active-backup) or "
			"mode=4 (802.3ad)",
			value);
	return 0;
}

static int
take_policy(struct device_bond *bond, const char *value, char *why, size_t why_size)
{
	static const char *const word[] = {
		[BOND_L2] = "l2", [BOND_L23] = "l23", [BOND_L34] = "l34"};

	for (unsigned int i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		if (strcmp(value, word[i]) == 0) {
			bond->policy = (enum bond_policy)i;
			return 0;
		}
	return why_not(why, why_size, -EINVAL,
		       "xmit_policy=%s is unknown; expected l2, l23 or l34", value);
}

/* Check the keys of a bond against each other. */
static int
bond_check(struct device_bond *bond, const char *primary, char *why, size_t why_size)
{
	if (bond->mode == BOND_NONE)
		return why_not(why, why_size, -EINVAL,
			       "has no mode; expected mode=1 (active-backup) or mode=4 "
			       "(802.3ad)");
	if (bond->n_member < 2)
		return why_not(why, why_size, -EINVAL,
			       "has %u member%s; expected at least two, "
			       "member=0000:03:00.0 each",
			       bond->n_member, bond->n_member == 1 ? "" : "s");
	if (primary[0] == '\0')
		return 0;
	if (bond->mode != BOND_ACTIVE_BACKUP)
		return why_not(why, why_size, -EINVAL,
			       "has a primary, which only mode=1 can have");
	bond->primary = member_find(bond, primary);
	if (bond->primary == bond->n_member)
		return why_not(why, why_size, -EINVAL, "primary=%s is not a member",
			       primary);
	return 0;
}

int
device_bond_parse(const char *device, struct device_bond *bond, char *why, size_t why_size)
{
	char text[256], primary[DEVICE_ADDRESS_STRLEN] = "", *rest = text, *word;
	int rc = 0;

	/*
	 * The default hash includes ports, because all flows of a router go to few MAC
	 * addresses.
	 */
	*bond = (struct device_bond){.policy = BOND_L34};
	snprintf(text, sizeof(text), "%s", device);
	strsep(&rest, ",");
	while (rc == 0 && (word = strsep(&rest, ",")) != NULL) {
		char *value = strchr(word, '=');

		if (value != NULL)
			*value++ = '\0';
		if (value == NULL)
			rc = why_not(why, why_size, -EINVAL,
				     "'%s' has no value; expected %s=...", word, word);
		else if (strcmp(word, "mode") == 0)
			rc = take_mode(bond, value, why, why_size);
		else if (strcmp(word, "member") == 0 || strcmp(word, "slave") == 0)
			rc = take_member(bond, value, why, why_size);
		else if (strcmp(word, "xmit_policy") == 0)
			rc = take_policy(bond, value, why, why_size);
		else if (strcmp(word, "primary") != 0)
			rc = why_not(why, why_size, -EINVAL,
				     "'%s' is unknown; expected mode, member, primary or "
				     "xmit_policy",
				     word);
		else if (!device_address(value, primary))
			rc = why_not(why, why_size, -EINVAL, "primary=%s is not a member",
				     value);
	}
	return rc < 0 ? rc : bond_check(bond, primary, why, why_size);
}

unsigned int
device_addresses(const char *device, char out[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN])
{
	struct device_bond bond;
	char why[256];

	if (!device_is_bond(device))
		return device_address(device, out[0]);
	if (device_bond_parse(device, &bond, why, sizeof(why)) < 0)
		return 0;
	memcpy(out, bond.member, sizeof(bond.member));
	return bond.n_member;
}
