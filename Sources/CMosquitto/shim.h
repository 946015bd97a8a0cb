// libmosquitto, as Debian packages it.
#ifndef NIGHTJAR_CMOSQUITTO_SHIM_H
#define NIGHTJAR_CMOSQUITTO_SHIM_H

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// A macro with a shift, and enumerations whose values the functions return as int.
static const int nightjar_MOSQ_LOG_ERR = MOSQ_LOG_ERR;
static const int nightjar_MOSQ_LOG_DEBUG = MOSQ_LOG_DEBUG;
static const int nightjar_MOSQ_ERR_CONN_PENDING = MOSQ_ERR_CONN_PENDING;
static const int nightjar_MOSQ_ERR_SUCCESS = MOSQ_ERR_SUCCESS;
static const int nightjar_MOSQ_ERR_ERRNO = MOSQ_ERR_ERRNO;
static const int nightjar_MOSQ_ERR_CONN_LOST = MOSQ_ERR_CONN_LOST;
static const int nightjar_MOSQ_ERR_KEEPALIVE = MOSQ_ERR_KEEPALIVE;
static const int nightjar_MOSQ_ERR_NO_CONN = MOSQ_ERR_NO_CONN;
static const int nightjar_MOSQ_ERR_OVERSIZE_PACKET = MOSQ_ERR_OVERSIZE_PACKET;
static const int nightjar_MQTT_RC_UNSPECIFIED = MQTT_RC_UNSPECIFIED;
static const int nightjar_MQTT_RC_NOT_AUTHORIZED = MQTT_RC_NOT_AUTHORIZED;
static const int nightjar_MQTT_RC_TOPIC_NAME_INVALID = MQTT_RC_TOPIC_NAME_INVALID;
static const int nightjar_MQTT_RC_PAYLOAD_FORMAT_INVALID = MQTT_RC_PAYLOAD_FORMAT_INVALID;
static const int nightjar_MQTT_RC_RETAIN_NOT_SUPPORTED = MQTT_RC_RETAIN_NOT_SUPPORTED;
static const int nightjar_MQTT_RC_QOS_NOT_SUPPORTED = MQTT_RC_QOS_NOT_SUPPORTED;
static const int nightjar_MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION = MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION;
static const int nightjar_MQTT_RC_SESSION_TAKEN_OVER = MQTT_RC_SESSION_TAKEN_OVER;

// Makes `place` another name of `descriptor`, which no child program inherits: dup3(2), which is a GNU name. -1 and errno.
static inline int nightjar_replace_descriptor(int descriptor, int place, int flags) {
  return (int)syscall(SYS_dup3, descriptor, place, flags);
}

// Sets the largest packet that the broker may send, in bytes (MQTT 5 section 3.1.2.11.4).
//
// Only mosquitto_connect_bind_v5 takes properties of a connection, and it waits for TCP. Without a host it keeps the properties and
// does not connect; mosquitto_connect_bind_async sends them later.
static inline int nightjar_limit_packets(struct mosquitto *client, uint32_t size) {
  mosquitto_property *properties = NULL;
  int result = mosquitto_property_add_int32(&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, size);
  if (result == MOSQ_ERR_SUCCESS) {
    result = mosquitto_connect_bind_v5(client, NULL, 1883, 60, NULL, properties);
    result = result == MOSQ_ERR_INVAL ? MOSQ_ERR_SUCCESS : MOSQ_ERR_NOT_SUPPORTED;
  }
  mosquitto_property_free_all(&properties);
  return result;
}

// Returns the best quality of service that the broker offers (MQTT 5 section 3.2.2.3.4).
static inline int nightjar_maximum_qos(const mosquitto_property *properties) {
  uint8_t quality = 2;
  mosquitto_property_read_byte(properties, MQTT_PROP_MAXIMUM_QOS, &quality, false);
  return quality;
}

// Returns the largest packet that the broker takes, in bytes (MQTT 5 section 3.2.2.3.6); 0 if it names none.
static inline uint32_t nightjar_maximum_packet_size(const mosquitto_property *properties) {
  uint32_t size = 0;
  mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, &size, false);
  return size;
}

#endif
