#!/bin/sh
# Fetches the peers' jars, and Hadoop's S3A, for Spark 4.1 with Maven: fetch_jars.sh DIRECTORY
set -eu
pom=$(dirname "$0")/s3a.xml
dir=${1:?usage: fetch_jars.sh DIRECTORY}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
get() {  # subdirectory group:artifact:version
    mvn -q -B dependency:copy -Dartifact="$2" -DoutputDirectory="$dir/$1" >/dev/null
}
[ -e "$dir/all" ] && exit 0
get delta io.delta:delta-spark_4.1_2.13:4.4.0
get delta io.delta:delta-storage:4.4.0
get delta io.delta:delta-kernel-api:4.4.0
get delta io.delta:delta-kernel-defaults:4.4.0
get delta io.unitycatalog:unitycatalog-client:0.6.0
get delta io.unitycatalog:unitycatalog-hadoop:0.6.0
get iceberg org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
# Spark has these groups, too, in versions of its own.
mvn -q -B -f "$pom" dependency:copy-dependencies -DoutputDirectory="$dir/s3a" \
    -DexcludeGroupIds=io.netty,org.slf4j,org.apache.httpcomponents,commons-codec,commons-logging >/dev/null
touch "$dir/all"
