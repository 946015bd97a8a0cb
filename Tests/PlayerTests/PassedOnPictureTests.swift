#if X264
  import Foundation
  import TestSupport
  import Testing

  /// `--http` on loopback, where the request is not this machine's own: passed on by a proxy or tunnel, by another
  /// name, or from a page of another site.
  @Suite(.serialized) struct PassedOnPictureTests {
    /// The headers that proxies and tunnels add.
    private static let passedOn = [
      "X-Forwarded-For: 203.0.113.9", "Forwarded: for=203.0.113.9;proto=https", "X-Real-IP: 203.0.113.9",
      "Via: 1.1 proxy.example", "CF-Connecting-IP: 203.0.113.9", "x-forwarded-host: camera.example",
      "X-Forwarded-Proto: https", "True-Client-IP: 203.0.113.9", "Host: camera.example", "Host: 192.0.2.7:8080",
      "Host: 0.0.0.0",
    ]

    @Test func `a request through a proxy needs a login if there are users, and gets no keys`() throws {
      let port = try TCPPort.free()
      let program = try LookedAtProgram(
        ["--to", "srtp://127.0.0.1:\(port)"], users: ["alice": "correct horse"], isDescribed: true)
      let login = ["--digest", "-u", "alice:correct horse"]
      #expect(try program.curl([], "/snapshot.jpg").status == 200)
      // A forwarded port looks like this machine itself, so whoever is behind it might get the key.
      #expect(try program.curl([], "/camera.sdp").status == 403)
      for field in Self.passedOn {
        let asked = try program.curl(["-H", field], "/snapshot.jpg")
        let challenges = HTTPFields(asked.headers).all("www-authenticate")
        #expect(asked.status == 401 && !challenges.isEmpty, "\(field)")
        #expect(challenges.allSatisfy { $0.hasPrefix("digest ") }, "\(field): \(challenges)")
        #expect(try program.curl(["-H", field], "/metrics").status == 401, "\(field)")
      }
      for field in [Self.passedOn[0], Self.passedOn[8]] {
        #expect(try program.curl(["-H", field] + login, "/snapshot.jpg").status == 200, "\(field)")
        #expect(try program.curl(["-H", field] + login, "/camera.sdp").status == 403, "\(field)")
      }
    }

    @Test func `a request through a proxy is refused if nobody can log in`() throws {
      let port = try TCPPort.free()
      let program = try LookedAtProgram(["--to", "srtp://127.0.0.1:\(port)"], isDescribed: true)
      #expect(try program.curl([], "/camera.sdp").status == 200)
      for field in Self.passedOn {
        #expect(try program.curl(["-H", field], "/snapshot.jpg").status == 403, "\(field)")
      }
      let asked = try program.curl(["-H", Self.passedOn[0]], "/stream.mjpg")
      let refusal = try FailureAnswer(asked.body)
      let mend = "add a user with nightjar user add NAME, and log in"
      #expect(refusal.failure == "no_permission" && refusal.error.hasSuffix(": \(mend)"), "\(refusal)")
      #expect(try program.curl([], "/snapshot.jpg").status == 200)
    }

    @Test func `a page of another site gets nothing; a page of this host and a link do`() throws {
      let program = try LookedAtProgram()
      let image = ["-H", "Sec-Fetch-Mode: no-cors", "-H", "Sec-Fetch-Dest: image"]
      let cross = ["-H", "Sec-Fetch-Site: cross-site"] + image
      for arguments in [
        cross, cross + ["-e", "https://evil.example/"], cross + ["-H", "Origin: null"],
        ["-e", "http://evil.example/page"], ["-e", "http://127.0.0.1.evil.example/"],
        // What a script of a page may say.
        ["-e", "http://evil.example/page", "-H", "Accept: text/html"], ["-e", "http://localhost@evil.example/"],
        ["-H", "Origin: https://evil.example"], ["-H", "Origin: null"],
      ] {
        let answer = try program.curl(arguments, "/snapshot.jpg")
        #expect(answer.status == 403, "\(arguments)")
        #expect(HTTPFields(answer.headers)["cross-origin-resource-policy"] == "same-origin", "\(answer.headers)")
      }
      let link = [
        "-H", "Sec-Fetch-Site: cross-site", "-H", "Sec-Fetch-Mode: navigate", "-H", "Sec-Fetch-Dest: document",
      ]
      let pages = [
        ["-H", "Sec-Fetch-Site: same-site"] + image, ["-e", "http://127.0.0.1:5000/"],
        // OctoPrint at http://localhost:5000 with http://127.0.0.1:8080: two sites to a browser.
        ["-e", "http://localhost:5000/"], cross + ["-e", "http://localhost:5000/"],
      ]
      for arguments in [
        [], link, ["-H", "Sec-Fetch-Site: same-origin"] + image, ["-H", "Sec-Fetch-Site: none"],
        ["-e", "http://evil.example/", "-H", "Upgrade-Insecure-Requests: 1"],
      ] + pages {
        let answer = try program.curl(arguments, "/snapshot.jpg")
        #expect(answer.status == 200, "\(arguments)")
        let policy = "cross-origin-resource-policy: \(pages.contains(arguments) ? "cross" : "same")-origin"
        #expect(answer.headers.contains(policy), "\(arguments) \(answer.headers)")
      }
    }

    /// A page with the picture, which tells its own server how wide the picture is, or `none`; served by whatever name
    /// it is asked for. At `/` pages of this machine's two names are within it.
    private static let pages = """
      import http.server, sys
      picture = sys.argv[1]
      class Pages(http.server.BaseHTTPRequestHandler):
          def do_GET(self):
              path, _, query = self.path.partition("?")
              if path == "/result": print(query + "\\n", end="", flush=True)
              port = self.server.server_address[1]
              frames = "".join(f"<iframe src=http://{name}:{port}/page></iframe>" for name in ("127.0.0.1", "localhost"))
              # The picture may be there before a script behind it runs.
              text = f'''<!doctype html><script>
                const tell = what => fetch("/result?" + location.hostname + "=" + what)
                </script><img src="{picture}" onload="tell(this.naturalWidth)" onerror="tell('none')">
                {frames if path == "/" else ""}'''.encode()
              self.send_response(200)
              self.send_header("Content-Type", "text/html")
              self.send_header("Content-Length", str(len(text)))
              self.end_headers()
              self.wfile.write(text)
          def log_message(self, *arguments): pass
      server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
      print("port", server.server_address[1], flush=True)
      server.serve_forever()
      """

    @Test func `Chromium shows the picture in pages of this machine, and in no other's`() throws {
      let program = try LookedAtProgram()
      let pages = try Subprocess(
        ["python3", "-c", Self.pages, program.url("/snapshot.jpg")], in: program.directory)
      defer { pages.send(SIGKILL) }
      try #require(eventually { pages.outputSoFar.hasSuffix("\n") })
      let port = try #require(Int(pages.outputSoFar.dropFirst(5).dropLast()))
      let chromium = try Subprocess(
        [
          "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
          "--user-data-dir=\(program.directory.path("chromium"))", "--remote-debugging-port=0",
          "--host-resolver-rules=MAP evil.example 127.0.0.1", "http://evil.example:\(port)/",
        ], in: program.directory, environment: ["HOME": program.directory.url.path])
      defer {
        chromium.send(SIGTERM)
        _ = try? chromium.wait(limit: 30)
      }
      let hasTold = eventually(within: 120) { pages.outputSoFar.split(separator: "\n").count >= 4 }
      #expect(hasTold, "\(pages.outputSoFar) \(chromium.errorSoFar.suffix(2000))")
      #expect(
        Set(pages.outputSoFar.split(separator: "\n").dropFirst())
          == ["evil.example=none", "127.0.0.1=320", "localhost=320"])
    }
  }
#endif
