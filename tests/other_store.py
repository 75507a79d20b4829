"""Another S3 server than moto's for the tests, as versitygw or MinIO: ``ACIDSQL_S3=http://host:port``
names the server, ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY`` are its keys.

The server neither counts requests nor fails by rule. Tests that need this are skipped.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn
from uuid import uuid4

import pytest
from object_store import REGION, hadoop_settings

OTHER_STORE = os.environ.get("ACIDSQL_S3")


class OtherStore:
    """The part of ``object_store.ObjectStore`` that any server has.

    Attributes:
        endpoint: Its URL.
    """

    def __init__(self, endpoint: str) -> None:
        import boto3
        from botocore.config import Config

        self.endpoint = endpoint
        path_style = Config(s3={"addressing_style": "path"})
        self._buckets: Any = boto3.resource(
            "s3", endpoint_url=endpoint, region_name=REGION, config=path_style
        )

    @property
    def hadoop(self) -> dict[str, str]:
        """Hadoop's settings for this server."""
        keys = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        return hadoop_settings(self.endpoint, *keys)

    def new_bucket(self) -> str:
        """Make a bucket, and return its name."""
        name = f"acidsql-{uuid4().hex}"
        self._buckets.create_bucket(
            Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        return name

    def drop_bucket(self, name: str) -> None:
        """Throw a bucket away with all that is in it."""
        bucket = self._buckets.Bucket(name)
        for upload in bucket.multipart_uploads.all():
            upload.abort()
        bucket.objects.all().delete()
        bucket.delete()

    def keys(self, bucket: str) -> list[str]:
        """The keys of all objects in a bucket, in order."""
        return sorted(one.key for one in self._buckets.Bucket(bucket).objects.all())

    def close(self) -> None:
        """Leave it."""
        self._buckets.meta.client.close()

    def _lacks(self, *_: Any) -> NoReturn:
        pytest.skip("this server neither counts requests nor fails by rule")

    mark = requests = counts = failing = do_late = _lacks
