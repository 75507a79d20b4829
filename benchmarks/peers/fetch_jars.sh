#!/bin/sh
# Fetches the peers' jars for Spark 4.1 with Maven: fetch_jars.sh DIRECTORY
set -eu
dir=${1:?usage: fetch_jars.sh DIRECTORY}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
get() {  # subdirectory group:artifact:version
    mvn -q -B dependency:copy -Dartifact="$2" -DoutputDirectory="$dir/$1" >/dev/null
}
[ -e "$dir/complete" ] && exit 0
get delta io.delta:delta-spark_4.1_2.13:4.4.0
get delta io.delta:delta-storage:4.4.0
get delta io.delta:delta-kernel-api:4.4.0
get delta io.delta:delta-kernel-defaults:4.4.0
get delta io.unitycatalog:unitycatalog-client:0.6.0
get delta io.unitycatalog:unitycatalog-hadoop:0.6.0
get iceberg org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
touch "$dir/complete"
