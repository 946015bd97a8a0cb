// libmosquitto, as Debian packages it.
#ifndef NIGHTJAR_CMOSQUITTO_SHIM_H
#define NIGHTJAR_CMOSQUITTO_SHIM_H

#include <mosquitto.h>

// A macro with a shift, and enumerations whose values the functions return as int.
static const int nightjar_MOSQ_LOG_ERR = MOSQ_LOG_ERR;
static const int nightjar_MOSQ_ERR_CONN_PENDING = MOSQ_ERR_CONN_PENDING;
static const int nightjar_MOSQ_ERR_SUCCESS = MOSQ_ERR_SUCCESS;
static const int nightjar_MOSQ_ERR_ERRNO = MOSQ_ERR_ERRNO;
static const int nightjar_MOSQ_ERR_CONN_LOST = MOSQ_ERR_CONN_LOST;
static const int nightjar_MOSQ_ERR_KEEPALIVE = MOSQ_ERR_KEEPALIVE;

#endif
