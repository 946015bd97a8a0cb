// libsrtp2, as Debian packages it.
#include <srtp2/srtp.h>
