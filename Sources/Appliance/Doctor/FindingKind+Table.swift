extension FindingKind {
  /// The kind's row of the table.
  var entry: (status: FindingStatus, meaning: String, mend: String) {
    switch self {
    case .configuration: (.ok, "the configuration can be read, or does not exist", "")
    case .configurationBroken:
      (
        .problem,
        "the file, the environment or the options have a mistake; the doctor does not check cameras and servers",
        "`nightjar config check` prints the place"
      )
    case .configurationRemark:
      (.warning, "something looks like a mistake, but the stream starts", "as it says")
    case .service: (.ok, "nightjar.service runs, or is not installed", "")
    case .serviceFailed:
      (
        .problem, "nightjar.service has failed, and systemd does not start it again",
        "`journalctl -u nightjar` says why; then `systemctl restart nightjar`"
      )
    case .serviceBroken:
      (
        .problem, "systemd cannot read the file of nightjar.service, or a part of it",
        "`systemd-analyze verify nightjar.service` prints the line; then `systemctl daemon-reload`"
      )
    case .serviceStopped: (.warning, "nightjar.service is installed and does not run", "`systemctl start nightjar`")
    case .serviceDisabled:
      (
        .warning, "nightjar.service runs, but does not start at the next boot",
        "`systemctl enable nightjar`"
      )
    case .serviceMasked:
      (.warning, "nightjar.service is masked: systemd does not start it", "`systemctl unmask nightjar`")
    case .serviceRestarts:
      (
        .warning, "nightjar.service has failed and waits for its next start, or has restarted three times or more",
        "`journalctl -u nightjar -p warning` says why"
      )
    case .serviceSilent: (.warning, "systemctl does not answer", "`systemctl is-system-running`")
    case .serviceGroup:
      (
        .problem, "the user of nightjar.service is not in a group that owns cameras, microphones or render nodes",
        "`usermod -aG GROUP nightjar`, then a restart"
      )
    case .stream: (.ok, "a stream runs and answers, or no stream runs", "")
    case .streamSilent:
      (.problem, "a program holds the control socket and does not answer", "`systemctl restart nightjar`, or end it")
    case .streamClosed:
      (.warning, "a stream runs, but this user may not use its control socket", "`sudo nightjar doctor`")
    case .clock: (.ok, "the clock is right, as far as the kernel knows", "")
    case .clockFree:
      (
        .warning, "nothing synchronizes the clock: times in pictures, logs and certificates drift",
        "`timedatectl set-ntp true`"
      )
    case .clockWrong:
      (
        .problem, "the clock shows an impossible year: certificates are not valid then",
        "`timedatectl set-ntp true`, or set it by hand"
      )
    case .temperature: (.ok, "the host is cool enough, or its temperature is unknown", "")
    case .temperatureHigh:
      (.warning, "the host is so hot that nightjar reduces the stream", "air, shade, a fan; a smaller picture")
    case .temperatureCritical:
      (.problem, "the kernel is about to switch the host off", "air, shade, a fan; a smaller picture")
    case .realtime: (.ok, "capture and send get real-time priority, or the options switch it off", "")
    case .realtimeNone:
      (
        .warning, "capture and send get no real-time priority: other programs delay pictures",
        "a limit `rtprio`, then log in again; the service has one"
      )
    case .state: (.ok, "nightjar can write its state directory, or keeps nothing there", "")
    case .stateClosed:
      (
        .problem, "nightjar cannot keep its own certificate: it cannot write the state directory",
        "`chown`, or `STATE_DIRECTORY`"
      )
    case .stateFull:
      (.problem, "the state directory has no space left", "`df` and `du` show what takes the space")
    case .users: (.ok, "users exist, or are not needed", "")
    case .usersNeeded:
      (
        .problem, "a server is open to other hosts, but nobody can log in: the stream does not start",
        "`nightjar user add NAME`"
      )
    case .usersFile:
      (.problem, "the users file cannot be used", "the file's mode, its owner, or the line in the message")
    case .tokens: (.ok, "there are tokens", "")
    case .tokensFile:
      (.problem, "the tokens file cannot be used", "the file's mode, its owner, or the line in the message")
    case .certificate: (.ok, "the certificate is valid, or nightjar makes one at the first start", "")
    case .certificateSoon:
      (.warning, "the certificate is valid for less than 30 days", "renew it; then `nightjar ctl reload`")
    case .certificateExpired:
      (
        .problem, "the certificate has expired: players refuse it",
        "renew it; nightjar renews its own at the next start"
      )
    case .certificateEarly: (.problem, "the certificate is not valid yet", "check the clock first")
    case .certificateFile:
      (.problem, "the certificate or the key cannot be used", "the file's mode, its owner, or the matching pair")
    case .port: (.ok, "the port is free, or nightjar has it", "")
    case .portHeld: (.problem, "another program listens there", "end it, or choose another port")
    case .portLow:
      (.problem, "the user may not listen at this port", "a port from 1024 on, or the socket unit")
    case .portAddress:
      (
        .warning, "this host does not have this address now, or cannot listen at it",
        "`ip address` lists the host's addresses"
      )
    case .announcement: (.ok, "nightjar announces the streams on the network, or can", "")
    case .announcementWaiting:
      (
        .warning, "nightjar does not announce the streams, though the options ask for it: others do not find them",
        "as it says; mostly `systemctl start avahi-daemon`"
      )
    case .mqtt: (.ok, "the MQTT broker takes the connection", "")
    case .mqttFile:
      (
        .problem, "the file of `mqtt-login` or `mqtt-ca` cannot be used: the stream does not start",
        "the file's mode, its owner, or its lines"
      )
    case .mqttUnreachable:
      (
        .warning, "the MQTT broker does not answer, or has another certificate: it learns of no alert",
        "start the broker; `mqtt` names it, and `mqtt-ca` its authority"
      )
    case .mqttRefused:
      (
        .warning, "the MQTT broker refuses the connection, mostly the user or the password: it learns of no alert",
        "the file of `mqtt-login`"
      )
    case .vaapi: (.ok, "hardware encodes; x264 or x265 encodes if there is no hardware for the codec", "")
    case .vaapiUnusable:
      (.warning, "there is graphics hardware, but its driver does not encode", "the driver's package")
    case .renderGroup:
      (
        .warning, "the user is not in the group of the graphics hardware",
        "`usermod -aG render USER`, then log in again"
      )
    case .renderLogin:
      (.warning, "the user has joined the group of the graphics hardware after this login", "log in again")
    case .renderMode:
      (.warning, "only root may use the graphics hardware", "group render and mode 660; permanently by a udev rule")
    case .camera: (.ok, "the camera is there and can be opened", "")
    case .cameraMissing:
      (.problem, "there is no such camera or file", "plug it in; `nightjar devices` lists the present ones")
    case .cameraNone: (.warning, "there is no camera: nightjar streams the built-in synthetic one", "plug one in")
    case .cameraAwaited:
      (.warning, "the camera is missing; nightjar streams a placeholder until it appears", "plug it in")
    case .cameraOther: (.problem, "the device is not a camera", "`nightjar devices` lists cameras")
    case .cameraGroup:
      (.problem, "the user is not in the camera's group", "`usermod -aG video USER`, then log in again")
    case .cameraLogin: (.problem, "the user has joined the camera's group after this login", "log in again")
    case .cameraMode:
      (.problem, "only root may open the camera", "group video and mode 660; permanently by a udev rule")
    case .cameraBusy: (.problem, "another program uses the camera", "end it, or choose another camera")
    case .cameraFormat:
      (
        .problem, "the camera does not offer the requested size, rate or format",
        "`nightjar devices` lists what it offers"
      )
    case .cameraSignal:
      (.problem, "the camera's input has no signal, or another one", "the cable, and what it is plugged into")
    case .cameraUnusable:
      (.problem, "the camera's driver, or the file, cannot be used", "as it says; unplug the camera and plug it in")
    case .cameraLost: (.problem, "the stream runs without its camera", "plug it in again")
    case .cameraFrozen: (.problem, "the camera delivers the same picture again and again", "unplug it and plug it in")
    case .cameraAbsent: (.problem, "the stream runs without this camera", "as it says")
    case .cameraRemark: (.warning, "the camera behaves unusually", "as it says")
    case .usb: (.ok, "the camera's USB link is as fast as the camera", "")
    case .usbSlow: (.warning, "the camera's USB link is slower than the camera", "another port or cable, without a hub")
    case .usbSleep:
      (
        .warning, "the kernel lets the camera sleep: it wakes up late, or with broken pictures",
        "`power/control`; permanently by the udev rule"
      )
    case .rate: (.ok, "the camera reaches its rate", "")
    case .rateLow:
      (
        .warning, "fewer pictures come than the camera has agreed to",
        "light, the control `exposure_dynamic_framerate`, another format or USB port"
      )
    case .rateLosses: (.warning, "more than 2 of 100 pictures were lost or broken", "another USB port or cable")
    case .rateNone: (.problem, "the camera opens, but delivers no picture", "unplug it and plug it in")
    case .encoder: (.ok, "the encoder is fast enough", "")
    case .encoderMissing:
      (.problem, "no encoder works that the options allow", "`--encoder auto`, or as the lines on vaapi say")
    case .encoderTight:
      (
        .warning, "encoding takes over 80 % of the time: nightjar will reduce the stream",
        "a cheaper x264 preset, VA-API quality, size or rate"
      )
    case .encoderSlow:
      (
        .problem, "encoding takes longer than the frame interval", "a cheaper x264 preset, VA-API quality, size or rate"
      )
    case .microphone: (.ok, "the microphone records; without a microphone, the stream has silence or no sound", "")
    case .microphoneMissing:
      (
        .problem, "there is no microphone of the name in `audio`",
        "plug it in; `nightjar devices` lists the present ones"
      )
    case .microphoneGroup:
      (.warning, "the user is not in the microphone's group", "`usermod -aG audio USER`, then log in again")
    case .microphoneLogin: (.warning, "the user has joined the microphone's group after this login", "log in again")
    case .microphoneMode:
      (.warning, "only root may open the microphone", "group audio and mode 660; permanently by a udev rule")
    case .microphoneBusy:
      (
        .problem, "another program uses the microphone",
        "end the program, or choose another microphone; where a sound server has it, `audio = \"default\"`"
      )
    case .microphoneFormat:
      (
        .problem, "the microphone offers no format, rate or channels that can be converted",
        "`nightjar devices` lists what it offers; another microphone"
      )
    case .microphoneUnusable:
      (.problem, "the microphone's driver cannot be used", "unplug the microphone and plug it in again")
    case .microphoneLost:
      (
        .problem, "the stream runs without its microphone",
        "plug it in again; if it is plugged in, `journalctl -u nightjar NIGHTJAR_EVENT=sound` says why"
      )
    case .microphoneUnused:
      (.warning, "the host has a microphone, but the stream began without one", "a restart of the stream")
    case .microphoneMuted:
      (
        .warning, "the sound card's mixer keeps the microphone silent: a switch is off, or a volume is zero",
        "`amixer -c CARD sset NAME cap`, or `capture 80%`"
      )
    case .microphoneSilent:
      (
        .warning, "the microphone records digital silence",
        "switch the microphone on, or choose another input or microphone"
      )
    }
  }
}
