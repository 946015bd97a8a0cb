# nightjar: make run streams, make test tests. `make help` lists the rest.

# The configuration of the tests. The release build serves people and tests: tests see what is `public` or `package`.
# `make test CONFIGURATION=debug` compiles everything a second time, with the checks of a debug build.
CONFIGURATION ?= release
# Where swift build puts what it makes. SWIFTPM_BUILD_DIR is its own variable, and goes before --scratch-path.
SCRATCH = $(or $(SWIFTPM_BUILD_DIR),.build)
BUILT_release = $(SCRATCH)/release
BUILT_debug = $(SCRATCH)/tests/debug
BUILD_release = scripts/build-release
BUILD_debug = scripts/build-debug --scratch-path $(SCRATCH)/tests
TEST_BUNDLE = $(abspath $(BUILT_$(CONFIGURATION))/nightjarPackageTests.xctest)
# Tests in one process, which nothing else uses.
LONG_TESTS = NIGHTJAR_LONG=1 $(TEST_BUNDLE) --testing-library swift-testing --filter
X264_ALONE = --traits X264 --scratch-path $(SCRATCH)/x264-alone
WITHOUT_X264 = --disable-default-traits --scratch-path $(SCRATCH)/without-x264
# The tests' driver for every program that looks for hardware.
STRICT_VA = LIBVA_DRIVER_NAME=strict LIBVA_DRIVERS_PATH=$(CURDIR)/.build/strict-va LIBVA_MESSAGING_LEVEL=0 \
  NIGHTJAR_RENDER_NODE=$(CURDIR)/.build/strict-va/renderD128 LD_PRELOAD=$(CURDIR)/.build/strict-va/render-node.so
BINARY = .build/release/nightjar
PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
SECONDS ?= 5
MINUTES ?= 30
BUSY ?=

.PHONY: help run build watch install uninstall deb check-deb build-tests test build-without-x264 test-without-x264 test-x264-alone strict-va examples docs lint check check-long check-arm64 fuzz fuzz-corpus rig \
  rig-test deb-test soak guard build-guard guard-allocations count-allocations guard-instructions bench bench-parts bench-ab bench-sustained bench-rig bench-congestion bench-quality bench-hevc bench-pipe bench-watch clean

help: ## Lists these targets.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: build ## Installs what is missing, builds, and streams (ARGS="--size 1920x1080 …").
	@$(BINARY) stream $(ARGS)

build: ## Builds the release binary, .build/release/nightjar.
	@scripts/check-swift
	@scripts/install-packages build
	@[ -e $(BINARY) ] || echo 'building nightjar and the packages it needs: four to eight minutes on two cores, on slow ones more; later builds take less' >&2
	scripts/build-release --product nightjar

watch: ## Builds the viewer for scripts, .build/release/nightjar-watch, and its manual page.
	@scripts/check-swift
	@scripts/install-packages build receiver
	scripts/build-release --product nightjar-watch
	scripts/man-pages .build/release/nightjar-watch .build/release

install: ## Installs what was built as a service of this machine, with sudo (PREFIX=/usr/local DESTDIR=).
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" BINARY="$(BINARY)" scripts/install

uninstall: ## Takes it away again, but for configuration and users.
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" scripts/install --remove

deb: build ## Packs what was built for Debian and Ubuntu, .build/nightjar_VERSION_ARCH.deb.
	@scripts/install-packages package
	@BINARY="$(BINARY)" scripts/make-deb

check-deb: deb ## Checks the package: lintian, manual pages, completions in bash, zsh and fish.
	@scripts/install-packages package-check
	@scripts/check-package "$$(ls -t .build/nightjar_*.deb | head -n 1)"

build-tests: strict-va ## Builds the programs, the examples, all tests, and the tests' VA-API driver (CONFIGURATION=debug).
	@scripts/check-swift
	@scripts/install-packages build receiver test
	$(BUILD_$(CONFIGURATION)) --build-tests

test: build-tests ## Installs what the tests need and runs them, with real players.
	scripts/run-tests $(TEST_BUNDLE) --skip '^RigTests'

# Without x264 and x265 three targets are compiled otherwise, X264, X265 and Encoding. `make check-long` runs the whole program's tests too.
HARDWARE_ONLY_TARGETS = $(if $(NIGHTJAR_LONG),EncodingTests$(comma)StreamingTests$(comma)PlayerTests,EncodingTests)
HARDWARE_ONLY = ^($(subst $(comma),|,$(HARDWARE_ONLY_TARGETS)))
HARDWARE_ONLY_BUILD = $(if $(NIGHTJAR_LONG),--build-tests,--product nightjarPackageTests)
comma = ,

build-without-x264: export NIGHTJAR_TEST_TARGETS = $(HARDWARE_ONLY_TARGETS)
build-without-x264: ## Builds what is compiled otherwise without x264 and x265, free of the GPL, and its tests.
	@scripts/check-swift
	@scripts/install-packages build receiver test
	$(MAKE) --no-print-directory strict-va
	scripts/build-debug $(HARDWARE_ONLY_BUILD) $(WITHOUT_X264)

test-without-x264: export NIGHTJAR_TEST_TARGETS = $(HARDWARE_ONLY_TARGETS)
test-without-x264: build-without-x264 ## Runs these tests, by the tests' VA-API driver.
	touch .build/strict-va/renderD128
	@# The driver encodes on the processor: a few at once, and slowness is no hang.
	$(STRICT_VA) NIGHTJAR_SUITES_AT_ONCE=2 NIGHTJAR_HANG_LIMIT=100 scripts/run-tests $(abspath $(SCRATCH)/without-x264/debug/nightjarPackageTests.xctest) \
	  --filter '$(HARDWARE_ONLY)' --skip ExampleTests

test-x264-alone: export NIGHTJAR_TEST_TARGETS = EncodingTests
test-x264-alone: ## Builds what is compiled otherwise without x265, and runs its tests.
	@scripts/check-swift
	@scripts/install-packages build receiver test
	$(MAKE) --no-print-directory strict-va
	scripts/build-debug --product nightjarPackageTests $(X264_ALONE)
	scripts/run-tests $(abspath $(SCRATCH)/x264-alone/debug/nightjarPackageTests.xctest) --filter '^EncodingTests' --skip ExampleTests

strict-va: ## Builds the VA-API driver that the tests use, .build/strict-va/.
	@$(MAKE) --no-print-directory -C Tests/StrictVADriver OUT=$(CURDIR)/.build/strict-va

check-arm64: ## Checks on x86-64 that the sources are right for arm64, as far as that goes.
	@scripts/check-swift
	@scripts/install-packages build receiver arm64
	@scripts/check-arm64

check-long: ## What takes long: the tests of a debug build, every setting of VA-API, a hundred fail-overs, viewers for minutes, fuzzing, an idle service.
	@# A debug build checks more, such as each index into an unsafe buffer.
	$(MAKE) --no-print-directory test CONFIGURATION=debug
	$(MAKE) --no-print-directory build-tests
	$(LONG_TESTS) 'VAAPITests|PixelConversionTests|Y4MFileTests|FFmpegControlTests|PlayerTests.(Encoder|Reload)Tests|MalformedRequestTests'
	@# Each in a process of its own, whose memory and descriptors nothing else uses.
	$(LONG_TESTS) DestinationChurnTests
	$(LONG_TESTS) ViewerChurnTests
	$(LONG_TESTS) ManyViewersTests
	$(LONG_TESTS) ConnectionChurnTests
	@# Eight hours without a false cry and half an hour of a card whose clock is wrong, simulated; a hundred kill -9 of a history; six
	@# rollovers of SRTP; a stream played from each place; every preset of x265 with larger pictures; 30,000 connections of the TLS handler.
	NIGHTJAR_LONG=1 NIGHTJAR_SUITE_MINUTES=60 scripts/run-tests $(TEST_BUNDLE) \
	  --filter '^(DetectionTests\.CryTests|SoundTests\.SoundAlignerTests|AlertsTests\.AlertHistoryTests|SRTPTests\.ProtectionTests|DecodingTests\.RecoveryTests|X265Tests\.X265EncoderTests|TLSTests\.TLSHandlerFuzzTests)'
	@# The page: half a minute without network, and half an hour without a false alarm.
	NIGHTJAR_LONG=1 NIGHTJAR_SUITE_MINUTES=60 scripts/run-tests $(TEST_BUNDLE) \
	  --filter '^PlayerTests\.Page(Alarm|Reconnect)Tests'
	rig/test passing
	@# The examples as another package builds them, on our products.
	$(MAKE) --no-print-directory examples
	$(MAKE) --no-print-directory test-without-x264 NIGHTJAR_LONG=1
	$(MAKE) --no-print-directory test-x264-alone
	$(MAKE) --no-print-directory fuzz SECONDS=120
	@# A camera and a microphone, unplugged and plugged in fifty times, and one of two cameras twenty times.
	@if [ "$$(uname -m)" = x86_64 ]; then $(MAKE) --no-print-directory rig; \
	  NIGHTJAR_LONG=1 NIGHTJAR_RIG=1 rig/run --seconds 900 $(TEST_BUNDLE) \
	    --testing-library swift-testing --no-parallel --filter 'CameraLossTests|SeveralCamerasRigTests|MicrophoneLossTests|SetupRigTests'; fi
	@# The service with nobody watching, for two minutes.
	@if [ "$$(uname -m)" = x86_64 ]; then $(MAKE) --no-print-directory rig; \
	  NIGHTJAR_LONG=1 rig/boot --seconds 900 rig/service-test "$${NIGHTJAR:-$(BINARY)}"; fi

examples: ## Builds the example programs as a package of their own, .build/examples/debug/.
	@scripts/check-swift
	@scripts/install-packages build receiver
	@# SwiftPM does not see files that are new in a package beside it; without its plan it looks again.
	@rm -f .build/examples/debug.yaml
	scripts/build-debug --package-path Examples --scratch-path $(SCRATCH)/examples

docs: ## Builds the libraries' API documentation, .build/docs/, and says how to read it.
	@scripts/check-swift
	@scripts/install-packages build receiver docs
	scripts/build-documentation

lint: ## Checks the sources' format, which module imports which, and the doc comments' openings.
	swift format lint --strict --parallel --recursive Package.swift Sources Tests Examples Benchmarks \
	  Fuzz/Package.swift Fuzz/Sources/Fuzz*
	scripts/check-imports
	scripts/check-comments --self-test
	scripts/check-comments

check: lint build ## Checks format, and what the release binary weighs and links.
	scripts/check-binary $(BINARY)

fuzz: ## Throws hostile input at the parsers, for SECONDS each (5).
	@scripts/check-swift
	@scripts/install-packages build receiver
	Fuzz/run $(SECONDS)

fuzz-corpus: ## Gives the parsers the stored hostile inputs and a thousand mutations of each set from one seed.
	@scripts/check-swift
	@scripts/install-packages build receiver
	Fuzz/run --runs 1000

rig: ## Builds the kernel with V4L2 test cameras, once a machine.
	@if [ "$$(uname -m)" = x86_64 ]; then scripts/install-packages rig; fi
	@rig/build-kernel || { status=$$?; [ $$status -eq 3 ] || exit $$status; }

rig-test: build-tests rig ## Boots that kernel and streams from its cameras (PARTS="cameras services").
	@CONFIGURATION=$(CONFIGURATION) rig/test $(PARTS)

deb-test: deb rig ## Boots that kernel, and installs, upgrades, removes and purges the package there.
	@if [ "$$(uname -m)" = x86_64 ]; then rig/boot --seconds 1800 rig/package-test "$$(ls -t .build/nightjar_*.deb | head -n 1)"; fi

soak: build ## Streams for MINUTES (30), and watches memory, descriptors, latency and losses (BUSY=--busy).
	@scripts/install-packages test
	Benchmarks/soak --minutes $(MINUTES) $(BUSY)

guard: guard-allocations guard-instructions ## Counts what fixed streams allocate and how many instructions a frame takes, against committed limits.

build-guard: build strict-va
	scripts/build-release --product UVCCameraTool

guard-allocations: build-guard rig count-allocations

count-allocations:
	@scripts/install-packages test
	Benchmarks/guard-allocations --self-test
	@if [ "$$(uname -m)" = x86_64 ]; then rig/run --seconds 600 Benchmarks/guard-allocations --cameras; \
	  else echo "guard: SKIPPED: User-Mode Linux needs an x86-64 host; no camera's stream was counted" >&2; fi

guard-instructions: build
	@scripts/install-packages test
	Benchmarks/guard-instructions --self-test

bench: build ## Measures beside ffmpeg, GStreamer and x264, in about 20 minutes (ARGS=--document puts it into docs/).
	@scripts/install-packages test
	Benchmarks/throughput $(ARGS)
	Benchmarks/instructions $(ARGS)
	Benchmarks/switches $(ARGS)
	Benchmarks/join $(ARGS)
	Benchmarks/late $(ARGS)
	Benchmarks/failover $(ARGS)
	Benchmarks/fanout $(ARGS)

bench-ab: build ## Measures what each optimization brings, alone: processor time, latency, allocations (ARGS=--document).
	@scripts/install-packages test
	Benchmarks/without $(ARGS)

bench-parts: build ## Measures nightjar's parts, for themselves: start, memory, encoders, rotation, SRTP, reloads, scrapes, the page.
	@scripts/install-packages test
	Benchmarks/footprint
	Benchmarks/encoders
	Benchmarks/rotation
	Benchmarks/srtp
	Benchmarks/reloads
	Benchmarks/scrapes
	Benchmarks/browser

bench-sustained: build ## Streams 4K and 1080p60 for MINUTES (30) each, beside ffmpeg and GStreamer (ARGS=--document).
	@scripts/install-packages test
	Benchmarks/sustained --minutes $(MINUTES) $(ARGS)

bench-quality: build ## Measures the picture's quality for the bits, beside ffmpeg and GStreamer (ARGS=--document).
	@scripts/install-packages test
	Benchmarks/quality $(ARGS)

bench-hevc: build ## Measures how much less bitrate HEVC takes than H.264 for equal pictures and processor time (ARGS=--document).
	@scripts/install-packages test
	Benchmarks/hevc $(ARGS)

bench-pipe: build ## Measures from a pipe to the network, beside ffmpeg, GStreamer and a bare loop (ARGS=--document).
	@scripts/install-packages test
	Benchmarks/pipe-to-wire $(ARGS)

bench-watch: build watch ## Measures from the camera to the decoded picture, beside ffmpeg and GStreamer (ARGS=--document).
	@scripts/install-packages test
	Benchmarks/watch $(ARGS)

bench-rig: build rig ## Measures from a USB camera to the network in the rig, beside ffmpeg and GStreamer (ARGS="--rounds 5 …").
	@scripts/install-packages test
	scripts/build-release --product UVCCameraTool
	@if [ "$$(uname -m)" = x86_64 ]; then Benchmarks/camera-to-wire $(ARGS); \
	  else echo "bench-rig: SKIPPED: User-Mode Linux needs an x86-64 host" >&2; fi

bench-congestion: build ## Measures viewers whose network gets weak, as root, in about 14 minutes (ARGS="--only sound …" or --document).
	@scripts/install-packages test
	Benchmarks/congestion $(ARGS)

clean: ## Removes what was built here (the rig's kernel is elsewhere).
	rm -rf .build Examples/.build
