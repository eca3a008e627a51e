/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse the value of a key "config", "port" or "hook", a request to the manage thread. Runs
 * in ui; no state. The input is untrusted: an unknown key or value is refused with a
 * sentence.
 */
#include "ui/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"

static int
change_refuse(char *why, size_t why_size, const char *text)
{
	snprintf(why, why_size, "%s", text);
	return -EINVAL;
}

#define PORT_KEYS                                                               \
	"port takes an object: do (add, set, del), name, device, mtu, queues, " \
	"cores"

/*
 * Return true if all keys of a port are known and have the right type. Else explain in
 * `why`.
 */
static bool
port_keys_check(const json_t *value, char *why, size_t why_size)
{
	static const struct {
		const char *key, *is;
		json_type type, other;
	} known[] = {
		{"do", "a string", JSON_STRING, JSON_STRING},
		{"name", "a string", JSON_STRING, JSON_STRING},
		{"device", "a string", JSON_STRING, JSON_STRING},
		{"mtu", "a whole number from 68 to 9216", JSON_INTEGER, JSON_INTEGER},
		{"queues", "a whole number from 1 to 64", JSON_INTEGER, JSON_INTEGER},
		{"cores", "a list of CPU numbers, nor auto", JSON_ARRAY, JSON_STRING},
	};
	char buf[128];
	const char *key;
	json_t *of;

	json_object_foreach ((json_t *)(uintptr_t)value, key, of) {
		unsigned int k = 0;

		while (k < sizeof(known) / sizeof(known[0]) &&
		       strcmp(known[k].key, key) != 0)
			k++;
		if (k < sizeof(known) / sizeof(known[0]) &&
		    (known[k].type == json_typeof(of) || known[k].other == json_typeof(of)))
			continue;
		if (k < sizeof(known) / sizeof(known[0]))
			snprintf(why, why_size, "%s is not %s", key, known[k].is);
		else
			snprintf(why, why_size,
				 "unknown key '%s'; a port has name, device, mtu, queues "
				 "and cores",
				 request_echo(key, buf));
		return false;
	}
	return true;
}

/* Parse a list with a CPU per queue, or "auto". */
static int
cores_parse(const json_t *cores, struct manage_want *want)
{
	const json_t *cpu;
	size_t i;

	want->cores_auto =
		json_is_string(cores) && strcmp(json_string_value(cores), "auto") == 0;
	if (want->cores_auto)
		return 0;
	if (!json_is_array(cores) || json_array_size(cores) == 0 ||
	    json_array_size(cores) > MANAGE_CORES_MAX)
		return -EINVAL;
	json_array_foreach (cores, i, cpu) {
		json_int_t n = json_integer_value(cpu);

		if (!json_is_integer(cpu) || n < 0 || n > 8191)
			return -EINVAL;
		want->core[i] = (unsigned int)n;
	}
	want->n_core = (unsigned int)i;
	return 0;
}

static int
change_refuse_number(char *why, size_t size, const char *key, json_int_t value,
		     const char *range)
{
	snprintf(why, size, "%s '%lld' is not a whole number %s", key, (long long)value,
		 range);
	return -EINVAL;
}

static int
port_parse(const json_t *value, struct request *req, char *why, size_t why_size)
{
	const char *what = NULL, *name = NULL, *device = NULL;
	struct manage_want *want = &req->change;
	json_int_t mtu = 1, queues = 1;
	const json_t *cores = NULL;
	json_error_t error;

	if (json_is_object(value) && !port_keys_check(value, why, why_size))
		return -EINVAL;
	if (json_unpack_ex((json_t *)(uintptr_t)value, &error, JSON_STRICT,
			   "{s:s, s:s, s?s, s?I, s?I, s?o}", "do", &what, "name", &name,
			   "device", &device, "mtu", &mtu, "queues", &queues, "cores",
			   &cores) < 0)
		return change_refuse(why, why_size, PORT_KEYS);
	want->op = strcmp(what, "add") == 0   ? MANAGE_PORT_ADD
		   : strcmp(what, "set") == 0 ? MANAGE_PORT_SET
		   : strcmp(what, "del") == 0 ? MANAGE_PORT_DEL
					      : MANAGE_NOTHING;
	if (want->op == MANAGE_NOTHING)
		return change_refuse(why, why_size, PORT_KEYS);
	if (name[0] == '\0' || (want->op == MANAGE_PORT_ADD && strlen(name) >= IF_NAMESIZE))
		return change_refuse(why, why_size, "a port's name has 1 to 15 characters");
	if (strlen(name) >= sizeof(want->tap))
		return change_refuse(why, why_size, "a port's name has 1 to 63 octets");
	if (device != NULL && strlen(device) >= sizeof(want->device))
		return change_refuse(why, why_size, "device is longer than 255 characters");
	/* manage checks the range of a number, because it knows the device. */
	if (mtu < 1 || mtu > INT32_MAX)
		return change_refuse_number(why, why_size, "mtu", mtu, "from 68 to 9216");
	if (queues < 1 || queues > INT32_MAX)
		return change_refuse_number(why, why_size, "queues", queues,
					    "from 1 to 64");
	if (want->op == MANAGE_PORT_ADD && device == NULL)
		return change_refuse(why, why_size, "a port needs a device");
	if (device != NULL && device[0] == '\0')
		return change_refuse(why, why_size, "device is an empty word");
	if (want->op == MANAGE_PORT_DEL && json_object_size(value) != 2)
		return change_refuse(why, why_size, "del takes a name, and nothing else");
	if (want->op == MANAGE_PORT_SET && json_object_size(value) == 2)
		return change_refuse(why, why_size,
				     "set needs device, mtu, queues or cores");
	if (cores != NULL && cores_parse(cores, want) < 0)
		return change_refuse(why, why_size,
				     "cores takes one CPU number per queue, or auto");
	strcpy(want->tap, name);
	strcpy(want->device, device != NULL ? device : "");
	want->mtu_bytes = json_object_get(value, "mtu") != NULL ? (unsigned int)mtu : 0;
	want->n_rxq = json_object_get(value, "queues") != NULL ? (unsigned int)queues : 0;
	return 0;
}

#define HOOK_KEYS                                                                    \
	"hook takes an object: do (load, unload), dev; and for load: file, id, at, " \
	"of, program"

/* Parse the instructions of a part of a program. */
static int
hook_part_parse(const char *program, struct hook_want *hook, char *why, size_t why_size)
{
	size_t len = strlen(program), n;
	uint8_t octets[sizeof(hook->part) + 2];

	if (len % 4 != 0 || base64_room(len) > sizeof(octets))
		return change_refuse(why, why_size,
				     "program is no base64 of at most 256 instructions");
	n = base64_decode(program, len, octets);
	if (n == 0 || n > sizeof(hook->part) || n % HOOK_INSTRUCTION_BYTES != 0)
		return change_refuse(why, why_size,
				     "program is no base64 of 1 to 256 instructions of 8 "
				     "octets");
	memcpy(hook->part, octets, n);
	hook->n = (unsigned int)(n / HOOK_INSTRUCTION_BYTES);
	return 0;
}

static int
hook_load_parse(const char *file, json_int_t at, json_int_t of, const char *program,
		struct hook_want *hook, char *why, size_t why_size)
{
	if (file == NULL || program == NULL)
		return change_refuse(why, why_size, "load needs file, of and program");
	if (file[0] == '\0' || strlen(file) >= sizeof(hook->file))
		return change_refuse(why, why_size, "file has 1 to 63 octets");
	if (of < 1 || of > HOOK_INSTRUCTIONS_MAX)
		return change_refuse_number(why, why_size, "of", of, "from 1 to 4096");
	if (at < 0 || at >= of)
		return change_refuse_number(why, why_size, "at", at, "from 0 below of");
	strcpy(hook->file, file);
	hook->at = (unsigned int)at;
	hook->of = (unsigned int)of;
	return hook_part_parse(program, hook, why, why_size);
}

static int
hook_parse(const json_t *value, struct request *req, char *why, size_t why_size)
{
	const char *what = NULL, *dev = NULL, *file = NULL, *program = NULL;
	struct hook_want *hook = &req->change.hook;
	json_int_t id = 0, at = 0, of = 0;
	json_error_t error;

	if (json_unpack_ex((json_t *)(uintptr_t)value, &error, JSON_STRICT,
			   "{s:s, s:s, s?s, s?I, s?I, s?I, s?s}", "do", &what, "dev", &dev,
			   "file", &file, "id", &id, "at", &at, "of", &of, "program",
			   &program) < 0)
		return change_refuse(why, why_size, HOOK_KEYS);
	if (dev[0] == '\0' || strlen(dev) >= sizeof(hook->dev))
		return change_refuse(why, why_size, "dev has 1 to 63 octets");
	strcpy(hook->dev, dev);
	if (strcmp(what, "unload") == 0 && json_object_size(value) == 2) {
		req->change.op = MANAGE_HOOK_UNLOAD;
		return 0;
	}
	if (strcmp(what, "load") != 0)
		return change_refuse(why, why_size, HOOK_KEYS);
	if (id < 0 || id > UINT32_MAX)
		return change_refuse_number(why, why_size, "id", id,
					    "from 0 to 4294967295");
	hook->id = (uint32_t)id;
	req->change.op = MANAGE_HOOK_LOAD;
	return hook_load_parse(file, at, of, program, hook, why, why_size);
}

static int
config_parse(const json_t *value, struct request *req, char *why, size_t why_size)
{
	const char *what = NULL, *file = NULL;
	int dry_run = 0;
	size_t n_known;
	json_error_t error;

	if (json_unpack_ex((json_t *)(uintptr_t)value, &error, 0, "{s:s, s?s, s?b}", "do",
			   &what, "file", &file, "dry_run", &dry_run) < 0) {
		const json_t *name = json_object_get(value, "file"),
			     *flag = json_object_get(value, "dry_run");

		if (name != NULL && !json_is_string(name))
			return change_refuse(why, why_size, "file is not a string");
		if (flag != NULL && !json_is_boolean(flag))
			return change_refuse(why, why_size, "dry_run is not true or false");
		return change_refuse(
			why, why_size,
			"config takes an object: do (show, keys, reload), file, dry_run");
	}
	n_known = 1 + (file != NULL) + (json_object_get(value, "dry_run") != NULL);
	if (json_object_size(value) != n_known)
		return change_refuse(why, why_size,
				     "unknown key in config; known are do, file, dry_run");
	if (strcmp(what, "show") == 0 && n_known == 1)
		req->change.op = MANAGE_SHOW;
	else if (strcmp(what, "keys") == 0 && n_known == 1)
		req->change.op = MANAGE_KEYS;
	else if (strcmp(what, "reload") == 0)
		req->change.op = MANAGE_RELOAD;
	else
		return change_refuse(why, why_size,
				     "config can `show`, tell `keys`, or `reload` a file");
	req->change.dry_run = dry_run != 0;
	if (file != NULL && (file[0] != '/' || strlen(file) >= sizeof(req->change.file)))
		return change_refuse(why, why_size,
				     "file is no absolute path of at most 255 octets");
	if (file != NULL)
		strcpy(req->change.file, file);
	return 0;
}

int
change_parse(const char *key, const json_t *value, struct request *req, char *why,
	     size_t why_size)
{
	if (strcmp(key, "port") == 0)
		return port_parse(value, req, why, why_size);
	return strcmp(key, "hook") == 0 ? hook_parse(value, req, why, why_size)
					: config_parse(value, req, why, why_size);
}
