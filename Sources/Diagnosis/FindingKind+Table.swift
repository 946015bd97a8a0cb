extension FindingKind {
  /// The row of the table.
  var entry: (status: FindingStatus, meaning: String, mend: String) {
    switch self {
    case .configuration: (.ok, "the configuration can be read, or there is none", "")
    case .configurationBroken:
      (
        .problem, "there is a mistake in file, environment or options; cameras and servers are not looked at",
        "`nightjar config check` tells the place"
      )
    case .configurationRemark:
      (.warning, "something looks like a mistake and is none that would keep it from running", "as it says")
    case .service: (.ok, "nightjar.service runs, or is none of this machine's", "")
    case .serviceFailed:
      (
        .problem, "nightjar.service has ended with a failure, and is not started again",
        "`journalctl -u nightjar` says why; then `systemctl restart nightjar`"
      )
    case .serviceBroken:
      (
        .problem, "systemd cannot read the file of nightjar.service, or a part of it",
        "`systemd-analyze verify nightjar.service` tells the line; then `systemctl daemon-reload`"
      )
    case .serviceStopped: (.warning, "nightjar.service is installed and does not run", "`systemctl start nightjar`")
    case .serviceDisabled:
      (
        .warning, "nightjar.service runs, and will not from the next boot on",
        "`systemctl enable nightjar`"
      )
    case .serviceMasked: (.warning, "somebody has forbidden nightjar.service to start", "`systemctl unmask nightjar`")
    case .serviceRestarts:
      (
        .warning, "nightjar.service has failed and waits for its next start, or was started again three times or more",
        "`journalctl -u nightjar -p warning` says why"
      )
    case .serviceSilent: (.warning, "systemctl does not answer", "`systemctl is-system-running`")
    case .serviceGroup:
      (
        .problem, "the user of nightjar.service is not in a group that owns cameras or render nodes",
        "`usermod -aG GROUP nightjar`, and a restart"
      )
    case .stream: (.ok, "a stream runs and answers, or none does", "")
    case .streamSilent:
      (.problem, "a program holds the control socket and does not answer", "`systemctl restart nightjar`, or end it")
    case .streamClosed: (.warning, "a stream runs whose control socket this user may not use", "`sudo nightjar doctor`")
    case .clock: (.ok, "the clock is right, as far as the kernel knows", "")
    case .clockFree:
      (
        .warning, "nothing synchronizes the clock: times in pictures, logs and certificates drift",
        "`timedatectl set-ntp true`"
      )
    case .clockWrong:
      (
        .problem, "the clock says a year that cannot be: certificates are not valid then",
        "`timedatectl set-ntp true`, or set it by hand"
      )
    case .temperature: (.ok, "the machine is cool enough, or does not tell", "")
    case .temperatureHigh:
      (.warning, "the machine is so hot that the stream does with less", "air, shade, a fan; a smaller picture")
    case .temperatureCritical:
      (.problem, "the machine is about to be switched off by its kernel", "air, shade, a fan; a smaller picture")
    case .realtime: (.ok, "capture and send get real-time priority, or are to do without", "")
    case .realtimeNone:
      (
        .warning, "capture and send get no real-time priority: other programs delay pictures",
        "a limit `rtprio`, then log in again; the service has one"
      )
    case .state: (.ok, "what is to outlive the program can be kept", "")
    case .stateClosed:
      (
        .problem, "the certificate of our own cannot be kept: the folder cannot be written",
        "`chown`, or `STATE_DIRECTORY`"
      )
    case .stateFull:
      (.problem, "there is no room for what is to outlive the program", "`df` and `du` show what takes it")
    case .users: (.ok, "there are users, or none are needed", "")
    case .usersNeeded:
      (.problem, "others are to reach a server, and nobody could log in: it does not start", "`nightjar user add NAME`")
    case .usersFile: (.problem, "the users file cannot be used", "its mode, its owner or the line that is named")
    case .tokens: (.ok, "there are tokens", "")
    case .tokensFile: (.problem, "the tokens file cannot be used", "its mode, its owner or the line that is named")
    case .certificate: (.ok, "the certificate is valid, or is made at the first start", "")
    case .certificateSoon:
      (.warning, "the certificate is valid for less than 30 days", "have it renewed; then `nightjar ctl reload`")
    case .certificateExpired:
      (
        .problem, "the certificate has expired: players refuse it",
        "have it renewed; one of our own is at the next start"
      )
    case .certificateEarly: (.problem, "the certificate is not valid yet", "the clock, most likely")
    case .certificateFile:
      (.problem, "certificate or key cannot be used", "its mode, its owner, or the pair that belongs together")
    case .port: (.ok, "the port is free, or ours", "")
    case .portHeld: (.problem, "another program listens there", "end it, or choose another port")
    case .portLow:
      (.problem, "the system keeps the port for programs with more rights", "a port from 1024 on, or the socket unit")
    case .portAddress:
      (.warning, "this machine has no such address now, or cannot listen there", "`ip address` shows those that it has")
    case .announcement: (.ok, "streams are announced on the network, or can be", "")
    case .announcementWaiting:
      (
        .warning, "streams are to be announced on the network, and are not: others do not find them",
        "as it says; mostly `systemctl start avahi-daemon`"
      )
    case .vaapi: (.ok, "hardware encodes H.264, or there is none and x264 does", "")
    case .vaapiUnusable:
      (.warning, "there is graphics hardware, and its driver does not encode", "the driver's package")
    case .renderGroup:
      (
        .warning, "the user may not use the graphics hardware: not in its group",
        "`usermod -aG render USER`, and log in again"
      )
    case .renderLogin:
      (.warning, "the user is in the group of the graphics hardware, this login not yet", "log in again")
    case .renderMode:
      (.warning, "nobody but root may use the graphics hardware", "group render and mode 660, for good by a udev rule")
    case .camera: (.ok, "the camera is there and can be opened", "")
    case .cameraMissing:
      (.problem, "there is no such camera or file", "plug it in; `nightjar devices` lists those that are there")
    case .cameraNone: (.warning, "there is no camera: the built-in synthetic one is streamed", "plug one in")
    case .cameraAwaited: (.warning, "the camera is not there; a placeholder is streamed until it is", "plug it in")
    case .cameraOther: (.problem, "it is no camera", "`nightjar devices` lists cameras")
    case .cameraGroup:
      (.problem, "the user may not open the camera: not in its group", "`usermod -aG video USER`, and log in again")
    case .cameraLogin: (.problem, "the user is in the camera's group, this login not yet", "log in again")
    case .cameraMode:
      (.problem, "nobody but root may open the camera", "group video and mode 660, for good by a udev rule")
    case .cameraBusy: (.problem, "another program uses the camera", "end it, or take another camera")
    case .cameraFormat:
      (
        .problem, "the camera does not offer the size, rate or format that is asked for",
        "what it has: `nightjar devices`"
      )
    case .cameraSignal:
      (.problem, "there is no signal at the camera's input, or another one", "the cable, and what it is plugged into")
    case .cameraUnusable:
      (.problem, "the camera's driver, or the file, cannot be used", "as it says; unplug the camera and plug it in")
    case .cameraLost: (.problem, "the stream runs without its camera", "plug it in again")
    case .cameraFrozen: (.problem, "the camera delivers the same picture again and again", "unplug it and plug it in")
    case .cameraAbsent: (.problem, "the stream runs, this camera of it does not", "as it says")
    case .cameraRemark: (.warning, "something about the camera is odd", "as it says")
    case .usb: (.ok, "the camera's USB link is as fast as the camera", "")
    case .usbSlow: (.warning, "the camera's USB link is slower than the camera", "another port or cable, without a hub")
    case .usbSleep:
      (
        .warning, "the kernel lets the camera sleep: it wakes up late, or with broken pictures",
        "`power/control`; for good by the udev rule"
      )
    case .rate: (.ok, "the camera reaches its rate", "")
    case .rateLow:
      (
        .warning, "fewer pictures come than were agreed on",
        "light, the control `exposure_dynamic_framerate`, another format or USB port"
      )
    case .rateLosses: (.warning, "more than 2 of 100 pictures were lost or broken", "another USB port or cable")
    case .rateNone: (.problem, "the camera can be opened, and delivers no picture", "unplug it and plug it in")
    case .encoder: (.ok, "the encoder is fast enough", "")
    case .encoderMissing:
      (.problem, "no encoder can be had that the options allow", "`--encoder auto`, or what the lines on vaapi say")
    case .encoderTight:
      (
        .warning, "encoding takes over 80 % of the time: the stream will do with less",
        "a cheaper x264 preset, size or rate"
      )
    case .encoderSlow: (.problem, "encoding takes longer than there is time", "a cheaper x264 preset, size or rate")
    }
  }
}
