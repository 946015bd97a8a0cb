"""Plays into the kernel's loopback card (snd-aloop) what is to be heard at a known time."""
import collections
import ctypes
import math
import subprocess
import threading
import time

RATE = 48_000
PERIOD = 960
FREQUENCY, LENGTH, AMPLITUDE = 1_000, 0.1, 8_192
LATENCY_MICROSECONDS = 500_000
PLAYBACK, S16_LE, INTERLEAVED = 0, 2, 3


def library():
    alsa = ctypes.CDLL("libasound.so.2")
    alsa.snd_strerror.restype = ctypes.c_char_p
    alsa.snd_pcm_writei.restype = ctypes.c_long
    alsa.snd_pcm_writei.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong]
    alsa.snd_pcm_delay.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_long)]
    alsa.snd_pcm_recover.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    alsa.snd_pcm_close.argtypes = [ctypes.c_void_p]
    return alsa


class Beeper(threading.Thread):
    """Beeps at the beginning of each second of the wall clock, until it is closed.

    The card's clock goes wrong by `shift` ppm, so the place of each beep among the samples is found anew: the samples
    played so far, by the card's own count, against the clock. The count grows in steps; the latest value of a step is
    the right one, so the largest of the last seconds counts."""

    def __init__(self, subdevice, shift):
        super().__init__(daemon=True)
        self.shift, self.underruns, self.is_open = shift, 0, True
        for device in (0, 1):
            subprocess.run(
                ["amixer", "-q", "-c", "Loopback", "cset",
                 f"iface=PCM,name='PCM Rate Shift 100000',device={device},subdevice={subdevice}",
                 str(round(100_000 * (1 + shift / 1e6)))], check=True)
        self.alsa = library()
        self.handle = ctypes.c_void_p()
        self.check(self.alsa.snd_pcm_open(
            ctypes.byref(self.handle), f"hw:CARD=Loopback,DEV=0,SUBDEV={subdevice}".encode(), PLAYBACK, 0))
        self.check(self.alsa.snd_pcm_set_params(
            self.handle, S16_LE, INTERLEAVED, 1, RATE, 0, LATENCY_MICROSECONDS))
        self.microphone = f"hw:CARD=Loopback,DEV=1,SUBDEV={subdevice}"
        self.start()

    def check(self, result):
        if result < 0:
            raise SystemExit(f"the loopback card: {self.alsa.snd_strerror(result).decode()}")

    def run(self):
        written, offsets = 0, collections.deque(maxlen=1_000)
        # The driver divides the time that has passed by the shift: a greater one makes the card slow.
        rate = RATE * 100_000 / round(100_000 * (1 + self.shift / 1e6))
        begin = time.time()
        delay = ctypes.c_long()
        while self.is_open:
            if self.alsa.snd_pcm_delay(self.handle, ctypes.byref(delay)) == 0 and written > RATE // 2:
                offsets.append(written - delay.value - rate * (time.time() - begin))
            origin = max(offsets, default=0)
            samples = (ctypes.c_int16 * PERIOD)()
            for index in range(PERIOD):
                at = begin + (written + index - origin) / rate
                phase = at % 1
                if phase < LENGTH:
                    samples[index] = int(AMPLITUDE * math.sin(2 * math.pi * FREQUENCY * phase))
            result = self.alsa.snd_pcm_writei(self.handle, samples, PERIOD)
            if result < 0:
                self.underruns += 1
                offsets.clear()
                self.check(self.alsa.snd_pcm_recover(self.handle, result, 1))
                # The card's count begins anew.
                written, begin = 0, time.time()
            else:
                written += result

    def close(self):
        self.is_open = False
        self.join()
        self.alsa.snd_pcm_close(self.handle)
