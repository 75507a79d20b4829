"""The S3 server of the tests does what tests of object stores rely on."""

from __future__ import annotations

from collections import Counter

import pyarrow.fs as pafs
import pytest
from object_store import ACCESS_KEY, REGION, SECRET_KEY, Request, Rule


def opened(s3, key=ACCESS_KEY):
    return pafs.S3FileSystem(
        access_key=key,
        secret_key=SECRET_KEY,
        region=REGION,
        endpoint_override=s3.endpoint,
        allow_delayed_open=True,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=1),
    )


def put(store, path, data=b"x"):
    with store.open_output_stream(path) as out:
        out.write(data)


def test_requests_are_counted_and_fail_by_rule(s3, bucket):
    store = opened(s3)
    s3.mark()
    put(store, f"{bucket}/a=ü %3A/f")
    store.copy_file(f"{bucket}/a=ü %3A/f", f"{bucket}/g")
    store.get_file_info(pafs.FileSelector(bucket, recursive=True))
    with store.open_input_file(f"{bucket}/g") as file:
        assert file.read() == b"x"
    assert Request("PUT", bucket, "a=ü %3A/f") in s3.requests()
    assert s3.counts("/g$") == Counter(COPY=1, HEAD=1, GET=1)
    assert s3.counts()["LIST"] == 1
    assert s3.keys(bucket) == ["a=ü %3A/f", "g"]

    with s3.failing(
        Rule("status", "PUT", "/n$", first=2),
        Rule("lost", "PUT", "/lost"),
        Rule("reset", "PUT", "/reset"),
        Rule("late", "COPY", "/late"),
    ):
        put(store, f"{bucket}/n")
        with pytest.raises(OSError, match="SLOW_DOWN|SlowDown"):
            put(store, f"{bucket}/n", b"second")
        put(store, f"{bucket}/n", b"third")
        for name in ("lost", "reset"):
            with pytest.raises(OSError, match="NETWORK_CONNECTION"):
                put(store, f"{bucket}/{name}")
        with pytest.raises(OSError, match="NETWORK_CONNECTION"):
            store.copy_file(f"{bucket}/g", f"{bucket}/late")
    assert s3.keys(bucket) == ["a=ü %3A/f", "g", "lost", "n"]
    assert s3.do_late() == 1
    assert "late" in s3.keys(bucket)
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        opened(s3, "other").get_file_info(bucket)
