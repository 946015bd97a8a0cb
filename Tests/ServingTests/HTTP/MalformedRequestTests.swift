import Foundation
import TestSupport
import Testing

/// Requests that no proper client sends: mutations of real ones, the same at every run.
@Suite(.serialized) struct MalformedRequestTests {
  /// The divisor of the work: `make check-long` does all of it.
  private static let share = runsLong ? 1 : 4

  @Test(arguments: [(false, 8000 / share), (true, 2000 / share)])
  func `malformed requests do it no harm`(_ overNetwork: Bool, _ count: Int) throws {
    let server = try NetworkControl(requestSeconds: 20, connections: 64)
    let place = overNetwork ? "\(server.port)" : server.served.socket
    let result = try Subprocess.run(
      ["python3", "-c", Self.script, place, "\(count)", server.token], in: server.served.directory, limit: 600)
    #expect(result.status == 0, "\(result.error.suffix(2000))")
    // So many of them were answered, and checked to be answered in the API's own way.
    let answered = result.outputText.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
    try #require(answered.count == 3, "\(result.outputText)")
    #expect(answered[0] == count)
    #expect(answered[1] > count / 4, "\(answered)")
    // And the server still was there after each hundred.
    #expect(answered[2] == count / 100)
    #expect(server.served.process.isRunning)
    let said = try server.served.finish()
    #expect(said.last == "stopped")
  }

  private static let script = """
    import json, random, socket, ssl, sys
    from concurrent.futures import ThreadPoolExecutor

    place, count, token = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
    is_network = place.isdigit()
    random.seed(20261121)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def connect():
        if not is_network:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(60)
            connection.connect(place)
            return connection
        plain = socket.create_connection(("127.0.0.1", int(place)), 60)
        return context.wrap_socket(plain)

    def ask(data, half_close=True):
        connection = connect()
        answer = b""
        try:
            connection.sendall(data)
            # Python's TLS cannot close its half: what is not answered soon was no whole request.
            if not is_network and half_close: connection.shutdown(socket.SHUT_WR)
            if is_network: connection.settimeout(1 if half_close else 60)
            while True:
                part = connection.recv(65536)
                if not part: break
                answer += part
                if is_network and answer.count(b"\\n") >= 2 and answer.endswith(b"}\\n"): break
        except (TimeoutError, ssl.SSLError, ConnectionError):
            pass
        connection.close()
        return answer

    login = b"Authorization: Bearer " + token + b"\\r\\n"
    def request(method, path, body=b""):
        head = method + b" " + path + b" HTTP/1.1\\r\\nHost: localhost\\r\\n"
        if body: head += b"Content-Type: application/json\\r\\nContent-Length: " + str(len(body)).encode() + b"\\r\\n"
        return head + b"\\r\\n" + body

    url = b'{"url":"rtp://192.0.2.7:5004"}'
    real = [
        request(b"GET", b"/v1/status"), request(b"GET", b"/v1/viewers"), request(b"POST", b"/v1/reload"),
        request(b"GET", b"/v1/cameras/camera/status"), request(b"POST", b"/v1/keyframe"),
        request(b"PUT", b"/v1/cameras/camera/orientation", b'{"degrees":90,"mirrored":false}'),
        request(b"PUT", b"/v1/bitrate", b'{"bits_per_second":2500000}'),
        request(b"POST", b"/v1/destinations", url), request(b"DELETE", b"/v1/cameras/camera/destinations", url),
        request(b"PUT", b"/v1/bitrate").replace(b"\\r\\n\\r\\n", b"\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
        + b'1b\\r\\n{"bits_per_second":2500000}\\r\\n0\\r\\n\\r\\n',
        request(b"PUT", b"/v1/bitrate", b'{"bits_per_second":2500000}').replace(b"Host", b"Expect: 100-continue\\r\\nHost"),
    ]
    scraps = [
        b"\\r\\n", b"\\n", b"\\r", b"\\0", b" ", b":", b"%00", b"%", b"/../", b"//", b"?", b"#", b"\\xff\\xfe", b"{", b"[" * 500,
        b"-1", b"99999999999999999999", b"1e999", b"0x", b"Content-Length: 5\\r\\n", b"Content-Length: 1000000000000\\r\\n",
        b"Transfer-Encoding: chunked\\r\\n", b"HTTP/9.9", b"HTTP/1.0", b"Connection: close\\r\\n", b"Upgrade: h2c\\r\\n",
        b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n", b"A" * 5000, b"X: y\\r\\n" * 100, b"{camera}", b"/v1/cameras/",
        b"Expect: 100-continue\\r\\n", b"Host: a\\r\\nHost: b\\r\\n", b"\\r\\n x: folded", b'"\\\\ud800"', b"null",
    ]
    def mutated():
        data = bytearray(random.choice(real))
        for _ in range(random.randint(1, 6)):
            if not data: break
            kind = random.randrange(7)
            at = random.randrange(len(data))
            end = min(len(data), at + random.randint(1, 40))
            if kind == 0: data[at] ^= 1 << random.randrange(8)
            elif kind == 1: data[at] = random.randrange(256)
            elif kind == 2: del data[at:end]
            elif kind == 3: data[at:at] = random.choice(scraps)
            elif kind == 4: data[at:end] = random.choice(scraps)
            elif kind == 5: data[at:at] = data[at:end] * random.randint(1, 20)
            else: del data[at:]
        # The login stays whole: guesses are another test's, and would hold up all that come after them.
        return bytes(data).replace(b"\\r\\n", b"\\r\\n" + login, 1)

    sent = answered = alive = 0
    pool = ThreadPoolExecutor(16)
    while sent < count:
        requests = [mutated() for _ in range(100)]
        for data, answer in zip(requests, pool.map(ask, requests)):
            sent += 1
            if not answer: continue
            answered += 1
            assert answer.startswith(b"HTTP/1.1 "), (data, answer)
            code = int(answer[9:12])
            assert code in (100, 200, 400, 401, 403, 404, 405, 409, 413, 501), (data, answer)
        last = real[0].replace(b"Host", login + b"Connection: close\\r\\nHost")
        answer = ask(last, half_close=False)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert "cameras" in json.loads(answer[answer.index(b"\\r\\n\\r\\n"):]), answer
        alive += 1
    print(sent, answered, alive)
    """
}
