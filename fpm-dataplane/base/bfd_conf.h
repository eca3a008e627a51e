/* SPDX-License-Identifier: BSD-3-Clause */
/* bfd_conf: the settings of BFD in the dataplane, as the file has them. */
#ifndef BASE_BFD_CONF_H
#define BASE_BFD_CONF_H

#include <stdbool.h>
#include <sys/socket.h>

#define BFD_DPLANE_PORT 50700 /* port of bfdd if --dplaneaddr names none */

struct bfd_setup_conf {
	bool on;                        /* false: bfdd sends and receives by the TAPs */
	struct sockaddr_storage dplane; /* where bfdd listens, in the control namespace */
	char name[56];                  /* "127.0.0.1:50700", for messages */
};

#endif
