# make run        install what is missing, build, play a sample agent session
# make check      install what is missing, build with both compilers, run every test
#
# make            build/hooktrail and build/libexec/
# make test       unit tests            make SAN=address,undefined test   (or SAN=thread)
# make contract   conformance vectors   make integration   whole programs, real servers
# make lint       everything a reviewer should not have to say
# make fuzz       60 s a target         make chaos         the long fault tests
# make bench      every speed target, beside its bare baseline
# make servers    a PostgreSQL and a Kafka to play with
# make fmt        format in place     make V=1   show the commands
# make install    to PREFIX (/usr/local), below DESTDIR     make help   this text
CC       ?= cc
V        ?=
Q        := $(if $(V),,@)
SAN      ?=
comma    := ,
OUT      := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
OBJ      := $(OUT)/obj

WARN := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes \
        -Wmissing-prototypes -Wold-style-definition -Wvla -Wundef -Wpointer-arith \
        -Wcast-qual -Wcast-align -Wwrite-strings -Wswitch-enum -Wimplicit-fallthrough \
        -Wnull-dereference -Wdouble-promotion -Werror
# Hidden symbols: a name of ours can never stand in for one inside a shared library.
HARD := -fvisibility=hidden -fstack-protector-strong -fstack-clash-protection -fno-common -fno-strict-aliasing -fPIE \
        $(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
VERSION  := 0.1.0
PQ_INC   := $(shell pkg-config --cflags libpq 2>/dev/null)
CPPFLAGS += -I. $(PQ_INC) -D_GNU_SOURCE -DHOOKTRAIL_VERSION='"$(VERSION)"' \
            -include collector/base/banned.h -MMD -MP
CFLAGS   += -std=gnu17 -O2 -g -pthread $(WARN) $(HARD) \
            $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
LDFLAGS  += -pthread -pie -Wl,-z,relro,-z,now -Wl,--as-needed \
            $(if $(SAN),-fsanitize=$(SAN))

# One archive a folder, linked from the highest to the lowest: an upward call is
# a link error too. --as-needed drops the libraries that a program does not use.
FOLDERS  := collector/ingress collector/recorder queries sinks collector/dispatcher \
            collector/journal collector/contract collector/sql collector/web \
            collector/process collector/match collector/record collector/base
LIBS     := -lmicrohttpd -lsqlite3 -lcurl -lpcre2-8 -lyaml -ljansson -lpq -lrdkafka -lcrypto
lib      = $(OBJ)/lib$(subst /,-,$(1)).a
ARCHIVES := $(foreach f,$(FOLDERS),$(call lib,$(f)))

LIB_SRC  := $(wildcard $(FOLDERS:%=%/*.c))
CLI_SRC  := $(wildcard collector/cli/*.c)
HEADERS  := $(wildcard collector/*/*.h sinks/*.h queries/*.h tests/*/*.h tests/unit/*/*.h)
SOURCES  := $(LIB_SRC) $(CLI_SRC) $(wildcard tests/*/*.c tests/unit/*/*.c)

ROLES    := $(patsubst %,$(OUT)/libexec/hooktrail-%,collect ship serve)
PROGRAMS := $(OUT)/hooktrail $(ROLES)
TESTS    := $(patsubst %.c,$(OBJ)/%,$(wildcard tests/unit/*/test_*.c))

all: $(PROGRAMS)

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "CC   $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

define ARCHIVE
$(call lib,$(1)): $(patsubst %.c,$(OBJ)/%.o,$(wildcard $(1)/*.c))
	@mkdir -p $$(@D) && rm -f $$@
	$$(Q)ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call ARCHIVE,$(f))))

# Embedded by the assembler, which tells no dependencies.
$(OBJ)/collector/sql/migration.o: $(wildcard collector/sql/migrations/*/*.sql)

# The front: cli/front_*.c, with libc alone. Each role: cli/ROLE_*.c, and cli_*.c, which all share.
CLI      = $(patsubst %.c,$(OBJ)/%.o,$(wildcard collector/cli/$(1)_*.c))
$(OUT)/hooktrail: $(call CLI,front) $(ARCHIVES)
	$(if $(V),,@echo "LINK $@")
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
define ROLE
$(OUT)/libexec/hooktrail-$(1): $(call CLI,$(1)) $(call CLI,cli) $(ARCHIVES)
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "LINK $$@")
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LIBS)
endef
$(foreach r,collect ship serve,$(eval $(call ROLE,$(r))))

# A test binary a module; doubles are tests/unit/FOLDER/fake_*.c and its *_contract.c.
FAKES    := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/unit/*/fake_*.c tests/unit/*/*_contract.c))
$(OBJ)/tests/unit/%: $(OBJ)/tests/unit/%.o $(FAKES) $(ARCHIVES)
	$(if $(V),,@echo "LINK $@")
	$(Q)$(CC) $(LDFLAGS) $(WRAP) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lcmocka
# No fake: who doubles the journal could not be linked with it.
$(addprefix $(OBJ)/tests/unit/sinks/,test_feed test_rejoin): $(OBJ)/tests/unit/sinks/small_journal.o
BENCH    := $(patsubst %.c,$(OBJ)/%,$(wildcard tests/bench/bench_*.c))
$(OBJ)/tests/bench/%: $(OBJ)/tests/bench/%.o $(OBJ)/tests/bench/events.o $(OBJ)/tests/bench/client.o $(FAKES) $(ARCHIVES)
	$(if $(V),,@echo "LINK $@")
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka
$(OBJ)/tests/unit/base/test_fs: WRAP := -Wl,--wrap=fsync

# ONLY="a d": some of them, by their letters.
bench: all $(BENCH) $(OBJ)/tests/live/live_journal
	@/usr/bin/python3 tests/bench/run.py $(OUT) $(ONLY)

# Drivers against real servers; the integration tests start those.
LIVE     := $(patsubst %.c,$(OBJ)/%,$(wildcard tests/live/*.c))
$(OBJ)/tests/live/%: $(OBJ)/tests/live/%.o $(FAKES) $(ARCHIVES)
	@echo "LINK $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka
live: $(LIVE)

# Built first, all of them; then as many at once as -j says, and each tells what it said in one piece.
test: $(TESTS)
	@$(MAKE) --no-print-directory -k $(TESTS:%=%.run)
%.run: %
	@said=$$($< 2>&1) || said=$$(printf '%s\n%s' "$$said" "$<: FAILED"); \
	    printf '%s\n' "$$said"; case $$said in *": FAILED") exit 1 ;; esac

# The whole programs: pytest, against real servers and real children.
PYTEST   := /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider $(PYTEST_ARGS)
integration: all live
	HOOKTRAIL_BIN=$(abspath $(OUT)/hooktrail) $(PYTEST) tests/integration

chaos: all live soak
	HOOKTRAIL_BIN=$(abspath $(OUT)/hooktrail) HOOKTRAIL_CHAOS=long $(PYTEST) -vv -s --durations=0 \
	    --durations-min=1 -x tests/integration -m chaos

# libFuzzer, under ASan and UBSan; what it found before is the corpus.
FUZZ_SECONDS ?= 60
FUZZERS  := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
build/fuzz/objects/built: $(LIB_SRC) $(HEADERS)
	@$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link,address,undefined \
	    OUT=build/fuzz/objects archives
	@touch $@
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c build/fuzz/objects/built
	@echo "LINK $@"
	$(Q)clang $(CPPFLAGS) -std=gnu17 -O1 -g -fsanitize=fuzzer,address,undefined -o $@ $< \
	    $(patsubst $(OBJ)/%,build/fuzz/objects/obj/%,$(ARCHIVES)) $(LIBS)
fuzz: $(FUZZERS)
	@printf '%s\n' $(FUZZERS) | xargs -P 2 -I{} sh tests/fuzz/run.sh {} $(FUZZ_SECONDS)
archives: $(ARCHIVES)

# Ill-behaved hooks by the thousand: no process, descriptor or memory may be left.
SOAK_CHAINS ?= 10000
$(OBJ)/tests/chaos/%: $(OBJ)/tests/chaos/%.o $(FAKES) $(ARCHIVES)
	$(if $(V),,@echo "LINK $@")
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka
soak: $(OBJ)/tests/chaos/soak_chain
	@$< $(SOAK_CHAINS)

contract: all
	@python3 tests/contract/run.py $(OUT)/hooktrail tests/contract/cases --skip-unbuilt
	@python3 tests/contract/model_sre.py $(OUT)/hooktrail -n 300

# Private servers on free ports, until Ctrl-C.
servers:
	@/usr/bin/python3 -m tests.servers

# What was found clean stays so until it, or what it includes, changes: a stamp a file and check.
LINT     := $(OUT)/lint
LINTED   := $(LIB_SRC) $(CLI_SRC)
LINT_CPP := -I. $(PQ_INC) -D_GNU_SOURCE -DHOOKTRAIL_VERSION='"$(VERSION)"' -std=gnu17
define STAMP
	@mkdir -p $(@D)
	@gcc $(LINT_CPP) -MM -MP -MT $@ -MF $@.d -xc $<
	$(Q)$(1)
	@touch $@
endef

# Each header must compile alone: it includes what it uses.
$(LINT)/%.h.alone: %.h
	$(call STAMP,echo '#include "$<"' | gcc $(LINT_CPP) $(WARN) -fsyntax-only -xc -)
$(LINT)/%.tidy: %.c .clang-tidy
	$(call STAMP,clang-tidy --quiet $< -- $(LINT_CPP))
$(LINT)/%.analyzed: %.c
	$(call STAMP,gcc $(LINT_CPP) -O2 -fanalyzer -Werror -c -o /dev/null $<)
check-headers: $(HEADERS:%=$(LINT)/%.alone)
tidy: $(LINTED:%.c=$(LINT)/%.tidy)
analyze: $(LINTED:%.c=$(LINT)/%.analyzed)

fmt-check:
	@clang-format --dry-run --Werror $(SOURCES) $(HEADERS)
fmt:
	clang-format -i $(SOURCES) $(HEADERS)

docs:
	@python3 tests/lint/docs.py

layers:
	@python3 tests/lint/layers.py

size:
	@python3 tests/lint/size.py

lint: fmt-check check-headers layers docs tidy analyze size

# The comment at the top of this file.
help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

run:
	@deploy/sample/run.sh

check:
	@.ci/run

# What a package needs: the front in bin, the roles where it looks for them.
PREFIX  ?= /usr/local
DEST     = $(DESTDIR)$(PREFIX)
install: all
	install -d $(DEST)/bin $(DEST)/libexec/hooktrail $(DEST)/share/man/man1 \
	    $(DEST)/share/man/man5 $(DEST)/share/man/man7 $(DEST)/share/doc/hooktrail \
	    $(DEST)/share/bash-completion/completions $(DEST)/share/zsh/site-functions \
	    $(DEST)/share/fish/vendor_completions.d $(DEST)/lib/systemd/system $(DEST)/lib/sysusers.d
	install -m 755 $(OUT)/hooktrail $(DEST)/bin/
	install -m 755 $(ROLES) $(DEST)/libexec/hooktrail/
	install -m 644 deploy/hooktrail.1 $(DEST)/share/man/man1/
	install -m 644 deploy/hooktrail.yaml.5 deploy/hooktrail-hooks.5 $(DEST)/share/man/man5/
	install -m 644 deploy/hooktrail-http.7 $(DEST)/share/man/man7/
	install -m 644 deploy/postgres-roles.sql deploy/sample/hooktrail.yaml deploy/sample/hooks.yaml \
	    $(DEST)/share/doc/hooktrail/
	umask 022 && $(OUT)/hooktrail completion bash >$(DEST)/share/bash-completion/completions/hooktrail
	umask 022 && $(OUT)/hooktrail completion zsh >$(DEST)/share/zsh/site-functions/_hooktrail
	umask 022 && $(OUT)/hooktrail completion fish >$(DEST)/share/fish/vendor_completions.d/hooktrail.fish
	install -m 644 deploy/systemd/hooktrail.sysusers $(DEST)/lib/sysusers.d/hooktrail.conf
	for unit in deploy/systemd/*.service; do \
	    sed 's|^ExecStart=/usr/local/|ExecStart=$(PREFIX)/|' $$unit >$(DEST)/lib/systemd/system/$$(basename $$unit) && \
	    chmod 644 $(DEST)/lib/systemd/system/$$(basename $$unit) || exit 1; \
	done

clean:
	rm -rf build

.PHONY: all help run live check install test contract integration chaos soak fuzz archives servers check-headers tidy analyze fmt fmt-check layers size docs lint clean
.SECONDARY:
-include $(shell find build $(OUT) -name '*.d' 2>/dev/null)
