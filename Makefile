# Everything starts here: `make help`. Needed: make and Python 3.11 or newer; the rest is fetched.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV   := .venv
PY     := $(VENV)/bin/python
BENCH  := .venv-bench
DBT    := .venv-dbt
STAMP  := $(VENV)/installed
# Found when a recipe needs it, so that `make help` costs nothing.
WITH_JAVA = JAVA_HOME="$$($(PY) -m acidsql.java)" && export JAVA_HOME && \
            export PYSPARK_PYTHON="$(CURDIR)/$(PY)" &&
ARGS   ?=

# A name on the PATH proves nothing (a shim of pyenv may stand for a version that is not selected),
# so each is run; Debian's python3 may lack ensurepip, without which there is no pip.
TRY_PYTHON = import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info)
define FIND_PYTHON
found=; \
for name in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
  case $$name in */*) places=$$(dirname $$name); name=$$(basename $$name);; *) places=$$PATH;; esac; \
  old=$$IFS; IFS=:; \
  for place in $$places; do \
    if [ -z "$$found" ] && [ -x "$$place/$$name" ] \
      && "$$place/$$name" -c '$(TRY_PYTHON)' >/dev/null 2>&1; then found=$$place/$$name; fi; \
  done; IFS=$$old; \
done; \
if [ -z "$$found" ]; then \
  echo "There is no Python 3.11 or newer here with the modules venv and ensurepip." >&2; \
  echo "  Debian, Ubuntu   sudo apt-get install python3.11 python3.11-venv" >&2; \
  echo "  Fedora, RHEL     sudo dnf install python3.11" >&2; \
  echo "  macOS            brew install python@3.12" >&2; \
  echo "  pyenv            pyenv install 3.12 && pyenv local 3.12" >&2; \
  echo "or name one: make install PYTHON=/path/to/python3.12" >&2; exit 1; \
fi
endef

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: $(STAMP) ## Make .venv with the project, its tests' tools and a Java
	@$(PY) -m acidsql.java >/dev/null

$(STAMP): pyproject.toml
	@set -e; if ! $(PY) -c '$(TRY_PYTHON)' >/dev/null 2>&1; then \
	  $(FIND_PYTHON); \
	  echo "Making $(VENV) with $$found ($$($$found --version))"; \
	  rm -rf $(VENV); $$found -m venv $(VENV); \
	fi
	@echo "Installing acidsql and what it needs (some 600 MB, a few minutes the first time) …"
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(PY) -m pip install --quiet --editable '.[connect,notebook,examples,java,hive,docs]' --group test
	@touch $@

.PHONY: run
run: install ## Run examples/flights.py: New York's flights of 2013 in ACID tables
	@$(WITH_JAVA) $(PY) examples/flights.py $(ARGS)

.PHONY: run-replication
run-replication: install ## Run examples/replication.py: a stream follows two databases, and is killed
	@$(WITH_JAVA) $(PY) examples/replication.py $(ARGS)

# A server of PostgreSQL's that the package starts is left alone: tests start their own.
define INSTALL_SERVERS
missing=; \
need() { \
  for place in "$$(command -v $$2)" /usr/lib/postgresql/*/bin/$$2 /usr/sbin/$$2 /usr/libexec/$$2; \
  do if [ -x "$$place" ]; then return; fi; done; missing="$$missing $$1"; \
}; \
need postgresql initdb; need mariadb-server-core mariadbd; \
need mariadb-client-core my_print_defaults; \
need chromium chromium; \
if [ -z "$$missing" ]; then exit 0; fi; \
if [ "$$(id -u)" = 0 ]; then root=env; else root="sudo -n env"; fi; \
apt="$$root DEBIAN_FRONTEND=noninteractive apt-get -qq"; \
if command -v apt-get >/dev/null && $$root true 2>/dev/null; then \
  echo "Installing$$missing …"; \
  $$apt update >/dev/null 2>&1; wanted=$$missing; missing=; \
  for package in $$wanted; do \
    $$apt install --yes --no-install-recommends $$package >/dev/null 2>&1 || missing="$$missing $$package"; \
  done; \
  if [ -z "$$missing" ]; then exit 0; fi; \
fi; \
echo "Cannot install$$missing here; tests that need one are skipped, or use a PostgreSQL of pip's."
endef

.PHONY: servers
servers: ## Install PostgreSQL, MariaDB and Chromium for the tests, where apt-get and root are to be had
	@$(INSTALL_SERVERS)

# Two processes share the modules out: of a statement the driver, the JVM and a worker do their parts
# in turn, so one process keeps little more than one core busy.
AT_ONCE = -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: install ## Run the tests of the day: fast ones first, then those with Spark (ARGS="-k merge")
	@$(WITH_JAVA) $(PY) -m pytest $(AT_ONCE) $(ARGS)

.PHONY: test-all
test-all: install ## Run all tests, also rare ones: before a release, and after a change of a foundation
	@$(WITH_JAVA) $(PY) -m pytest $(AT_ONCE) --tests all $(ARGS)

HIVE    := 4
ON_HIVE := dml streams cdc history/test_history_spark.py

.PHONY: test-hive
test-hive: install ## Run the tests of SQL and of streams over a Hive Metastore 4.0.1, which Maven fetches (HIVE=4.2: 4.2.0)
	@$(WITH_JAVA) ACIDSQL_OVER_HIVE=$(HIVE) $(PY) -m pytest $(ON_HIVE:%=tests/%) $(AT_ONCE) $(ARGS)

.PHONY: test-hive-faults
test-hive-faults: install ## Run the tests of traps of a Hive Metastore, of its faults, and of killed clients (HIVE=4.2: of 4.2.0)
	@$(WITH_JAVA) ACIDSQL_HIVE=$(HIVE) $(PY) -m pytest tests/dml/test_hive_metastore.py tests/faults/test_hive_*.py $(ARGS)

ON_HIVE_3 := oracle transaction_oracle insert update_delete merge transactions conflicts insert_only partition_ddl \
  returning constraints types conversion

.PHONY: test-hive3
test-hive3: install ## Run half of the tests of SQL over a Hive Metastore 3.1.3, which Maven fetches
	@$(WITH_JAVA) ACIDSQL_OVER_HIVE=3 $(PY) -m pytest $(ON_HIVE_3:%=tests/dml/test_%.py) $(AT_ONCE) $(ARGS)

ON_S3 := oracle transaction_oracle insert update_delete merge transactions partition_ddl compaction undo time_travel \
  returning object_stores hive_object_stores

.PHONY: test-s3
test-s3: install ## Run the tests of SQL on an object store (moto, and Hadoop's S3A by Maven)
	@$(WITH_JAVA) ACIDSQL_ON_S3=1 $(PY) -m pytest $(ON_S3:%=tests/dml/test_%.py) $(AT_ONCE) $(ARGS)

.PHONY: hdfs
hdfs: install ## Run a small HDFS 3.5, which Maven fetches, until an empty line ends it
	@$(WITH_JAVA) $(PY) tests/mini_hdfs.py

ON_HDFS := $(filter-out object_stores hive_object_stores,$(ON_S3))

.PHONY: test-hdfs
test-hdfs: install ## Run the tests of SQL, streams and failures on a small HDFS 3.5, which Maven fetches
	@$(WITH_JAVA) $(PY) -m pytest tests/hdfs tests/test_cluster.py --tests all $(ARGS)
	@$(WITH_JAVA) ACIDSQL_ON_HDFS=1 $(PY) -m pytest $(ON_HDFS:%=tests/dml/test_%.py) \
	  tests/streams/test_sink.py tests/streams/test_table_feed.py tests/streams/test_changes.py $(AT_ONCE) $(ARGS)

.PHONY: test-kerberos
test-kerberos: install ## Run the tests of Kerberos (Debian: krb5-kdc, krb5-user, libkrb5-dev, gcc)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[hive-kerberos]'
	@$(WITH_JAVA) $(PY) -m pytest tests/metastore/test_hive_kerberos.py $(ARGS)

.PHONY: test-kafka
test-kafka: install ## Run the test of a stream from a real Kafka 4.3, which Maven fetches
	@$(WITH_JAVA) ACIDSQL_KAFKA=1 $(PY) -m pytest tests/streams/test_kafka.py $(ARGS)

# dbt has a virtual environment of its own: it is large, and pins what others may want newer.
$(DBT)/installed: pyproject.toml
	@set -e; $(FIND_PYTHON); rm -rf $(DBT); $$found -m venv $(DBT)
	@echo "Installing acidsql and dbt into $(DBT) (some 1.1 GB) …"
	@$(DBT)/bin/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(DBT)/bin/pip install --quiet --disable-pip-version-check --editable '.[connect,dbt,java]' --group dbt-suite
	@touch $@

WITH_DBT = JAVA_HOME="$$($(DBT)/bin/python -m acidsql.java)" && export JAVA_HOME && \
           export PYSPARK_PYTHON="$(CURDIR)/$(DBT)/bin/python" DBT_SEND_ANONYMOUS_USAGE_STATS=false &&

.PHONY: test-dbt
test-dbt: $(DBT)/installed ## Run dbt's own conformance suite over the adapter for dbt (ARGS="-k snapshot"; over Connect: ACIDSQL_CONNECT=1)
	@$(WITH_DBT) $(DBT)/bin/python -m pytest -p dbt.tests.fixtures.project \
	  --confcutdir=tests/dbt_suite tests/dbt_suite $(ARGS)

.PHONY: run-dbt
run-dbt: $(DBT)/installed ## Run examples/dbt three times: a shop's seeds, facts and history by dbt
	@$(WITH_DBT) $(DBT)/bin/python examples/dbt/run.py $(ARGS)

.PHONY: test-trino
test-trino: install ## Run the tests beside a real Trino 483, which Maven fetches (360 MB; JDK 25)
	@$(PY) -m pip install --quiet --disable-pip-version-check --group trino
	@$(WITH_JAVA) ACIDSQL_TRINO=1 $(PY) -m pytest tests/beside/test_trino_reads.py tests/beside/test_trino_writes.py $(ARGS)

.PHONY: mutants
mutants: install ## Try small faults one by one: the tests must notice each (ARGS="--fast", ARGS="--only lock")
	@$(WITH_JAVA) $(PY) tests/mutants/mutants.py $(ARGS)

.PHONY: test-fast
test-fast: install ## Run what the day has of quick tests, without Spark and servers
	@$(PY) -m pytest -m "not spark and not server and not slow" $(AT_ONCE) $(ARGS)

.PHONY: sql
sql: install ## Run a statement: make sql ARGS='"SHOW TABLES"'
	@$(WITH_JAVA) $(VENV)/bin/acidsql sql $(ARGS)

.PHONY: docs
docs: install ## Build the documentation in build/site (MkDocs); warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict $(ARGS)
	@echo "Open build/site/index.html. Its search needs a server: python -m http.server -d build/site"

.PHONY: pictures
pictures: install ## Draw the documentation's pictures anew, from what acidsql does now (some minutes)
	@$(WITH_JAVA) $(PY) docs/generator/pictures/draw.py --record $(ARGS)

.PHONY: lint
lint: install ## Check style and types
	@$(PY) -m pip install --quiet --disable-pip-version-check --group lint
	@$(PY) -m ruff check acidsql pyspark_acidsql tests examples benchmarks docs
	@$(PY) -m mypy

# The peers stop at Spark 4.1, so all are measured on it.
$(BENCH)/installed: pyproject.toml
	@set -e; $(FIND_PYTHON); rm -rf $(BENCH); $$found -m venv $(BENCH)
	@echo "Installing Spark 4.1 into $(BENCH) …"
	@$(BENCH)/bin/pip install --quiet --disable-pip-version-check --editable . 'pyspark==4.1.*' psutil \
	  'moto[s3]>=5.2' flask flask-cors
	@touch $@

.PHONY: bench
bench: install $(BENCH)/installed ## Measure beside Delta Lake and Iceberg, on a disk and on S3 (Maven; ARGS="--scale 0.2")
	@command -v mvn >/dev/null || { echo "Maven (mvn) fetches the peers; install it." >&2; exit 1; }
	@sh benchmarks/peers/fetch_jars.sh build/bench/jars
	@JAVA_HOME="$$($(PY) -m acidsql.java)" && export JAVA_HOME && \
	  $(BENCH)/bin/python benchmarks/peers/compare.py $(ARGS) && \
	  $(BENCH)/bin/python benchmarks/s3.py

.PHONY: test-peers
test-peers: install $(BENCH)/installed ## Ask Delta Lake, Iceberg and Spark what tests/peers has recorded (Maven; ARGS=--record)
	@command -v mvn >/dev/null || { echo "Maven (mvn) fetches the peers; install it." >&2; exit 1; }
	@sh benchmarks/peers/fetch_jars.sh build/bench/jars
	@JAVA_HOME="$$($(PY) -m acidsql.java)" && export JAVA_HOME && \
	  export PYSPARK_PYTHON="$(CURDIR)/$(BENCH)/bin/python" && \
	  $(BENCH)/bin/python tests/peers/suite/oracle.py build/bench/jars $(ARGS)

.PHONY: clean
clean: ## Remove what was built, tables of the example included; keep .venv and .java
	rm -rf build dist logs examples/dbt/logs examples/dbt/target spark-warehouse metastore_db derby.log .pytest_cache .hypothesis \
	  .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove the virtual environments and .java too
	rm -rf $(VENV) $(BENCH) $(DBT) .java
