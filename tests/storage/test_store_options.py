"""Hadoop's settings of object stores become arguments of Arrow's file systems, or are refused."""

from __future__ import annotations

import logging
from datetime import timedelta

import pyarrow.fs as pafs
import pytest
from object_store import Rule

import pyspark_acidsql
from acidsql.errors import SettingError
from acidsql.storage.files.options import store_options
from acidsql.storage.files.options.azure_options import azure_arguments, azure_conf
from acidsql.storage.files.options.gcs_options import gcs_arguments, gcs_conf
from acidsql.storage.files.options.s3_options import s3_arguments, s3_conf
from acidsql.storage.files.options.store_options import open_store, settings_here

HADOOP, AWS = "org.apache.hadoop.fs.s3a", "software.amazon.awssdk.auth.credentials"
KEYS = {"fs.s3a.access.key": "AKIAEXAMPLE", "fs.s3a.secret.key": "hush-hush"}
NONE = {"access_key": None, "secret_key": None, "session_token": None}
ROLE = {
    "fs.s3a.aws.credentials.provider": f"{HADOOP}.auth.AssumedRoleCredentialProvider",
    "fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r",
}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)


def s3_of(bucket="b-1", **settings):
    """The arguments for settings of s3a with short names, ``_`` for a dot."""
    return arguments(
        {f"fs.s3a.{name.replace('_', '.')}": v for name, v in settings.items()}, bucket
    )


def arguments(conf, bucket="b-1"):
    found = s3_arguments(s3_conf(conf, bucket), bucket, lambda name: f"region-of-{name}")
    assert found.pop("allow_delayed_open") is True
    limits = {"request_timeout": 200, "connect_timeout": 10}
    return dict(pair for pair in found.items() if pair not in limits.items())


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, {"region": "region-of-b-1"}),
        ({"endpoint": " s3.amazonaws.com "}, {"region": "region-of-b-1"}),
        ({"endpoint": "s3.eu-west-3.amazonaws.com"}, {"region": "eu-west-3"}),
        ({"endpoint_region": "eu-north-1"}, {"region": "eu-north-1"}),
        (
            {"endpoint": "https://s3.dualstack.eu-west-1.amazonaws.com"},
            {
                "endpoint_override": "s3.dualstack.eu-west-1.amazonaws.com",
                "scheme": "https",
                "region": "eu-west-1",
                "force_virtual_addressing": True,
            },
        ),
        (
            {"endpoint": "minio:9000", "connection_ssl_enabled": "FALSE"},
            {
                "endpoint_override": "minio:9000",
                "scheme": "http",
                "region": "us-east-1",
                "force_virtual_addressing": True,
            },
        ),
        (
            {"endpoint": "http://minio:9000/", "path_style_access": "true", "endpoint_region": "x"},
            {
                "endpoint_override": "minio:9000",
                "scheme": "http",
                "region": "x",
                "force_virtual_addressing": False,
            },
        ),
    ],
)
def test_where_a_bucket_is(settings, wanted):
    assert s3_of(**settings) == wanted


def test_a_host_without_names_below_it_is_addressed_by_paths():
    for endpoint, bucket in (("http://10.0.0.1:9000", "b-1"), ("minio", "b.1"), ("minio", "B_1")):
        assert s3_of(bucket, endpoint=endpoint)["force_virtual_addressing"] is False


def test_the_environment_may_tell_the_region(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert s3_of()["region"] == "ap-south-1"
    assert s3_of(endpoint="minio")["region"] == "ap-south-1"
    assert s3_of(endpoint_region="eu-west-1")["region"] == "eu-west-1"


def test_settings_of_a_bucket_override_others():
    conf = {
        "fs.s3a.endpoint": "http://one",
        "fs.s3a.bucket.b.1.endpoint": "http://two",
        "fs.s3a.bucket.b.endpoint": "http://three",
        **{f"fs.s3a.bucket.b.1.{name}": f"own-{name}" for name in ("access.key", "secret.key")},
        **KEYS,
    }
    found = arguments(conf, "b.1")
    assert (found["endpoint_override"], found["access_key"]) == ("two", "own-access.key")
    assert arguments(conf, "b")["endpoint_override"] == "three"
    assert arguments(conf, "other")["access_key"] == "AKIAEXAMPLE"


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, {}),
        (KEYS, {"access_key": "AKIAEXAMPLE", "secret_key": "hush-hush", "session_token": None}),
        (
            {**KEYS, "fs.s3a.session.token": "t0ken"},
            {"access_key": "AKIAEXAMPLE", "secret_key": "hush-hush", "session_token": "t0ken"},
        ),
        (
            {
                **KEYS,
                "fs.s3a.session.token": "of others",
                "fs.s3a.aws.credentials.provider": f"{HADOOP}.SimpleAWSCredentialsProvider",
            },
            {"access_key": "AKIAEXAMPLE", "secret_key": "hush-hush", "session_token": None},
        ),
        (
            {
                **KEYS,
                "fs.s3a.aws.credentials.provider": f"\n {HADOOP}.TemporaryAWSCredentialsProvider,"
                f" {AWS}.DefaultCredentialsProvider ",
            },
            {},
        ),
        (
            {
                "fs.s3a.aws.credentials.provider": f"{HADOOP}.AnonymousAWSCredentialsProvider",
                **KEYS,
            },
            {"anonymous": True},
        ),
        (
            {"fs.s3a.aws.credentials.provider": f"{HADOOP}.auth.ProfileAWSCredentialsProvider"},
            {},
        ),
        (
            {
                **ROLE,
                "fs.s3a.assumed.role.session.name": "etl",
                "fs.s3a.assumed.role.external.id": "77",
            },
            {"role_arn": "arn:aws:iam::1:role/r", "session_name": "etl", "external_id": "77"},
        ),
    ],
)
def test_who_asks(settings, wanted):
    assert arguments(settings) == {**wanted, "region": "region-of-b-1"}


def test_how_requests_are_sent(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CA_BUNDLE", f"{tmp_path}/ca.pem")
    found = s3_of(
        proxy_host="p", proxy_port="3128", proxy_username="u", proxy_password="pw",
        attempts_maximum="7", connection_timeout="5m", connection_establish_timeout="1500",
    )  # fmt: skip
    login = {"username": "u", "password": "pw"}
    assert found["proxy_options"] == {"scheme": "http", "host": "p", "port": 3128, **login}
    assert found["retry_strategy"].max_attempts == 7
    assert (found["request_timeout"], found["connect_timeout"]) == (300, 1.5)
    assert found["tls_ca_file_path"] == f"{tmp_path}/ca.pem"
    assert s3_of(proxy_host="p")["proxy_options"] == {"scheme": "http", "host": "p", "port": 443}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"aws.credentials.provider": "com.corp.Vault"},
            "names com.corp.Vault, which runs in Java",
        ),
        ({"aws.credentials.provider": "SimpleAWSCredentialsProvider"}, "runs in Java"),
        ({"aws.credentials.provider": f"{HADOOP}.SimpleAWSCredentialsProvider"}, "no credentials"),
        ({"access.key": "a"}, "fs.s3a.access.key is set, and fs.s3a.secret.key is not"),
        ({"encryption.algorithm": "SSE-C", "encryption.key": "k"}, "algorithm=SSE-C cannot be"),
        ({"encryption.algorithm": "SSE-KMS"}, "default encryption"),
        ({"server-side-encryption-algorithm": "CSE-KMS"}, "of the client's own"),
        ({"requester.pays.enabled": "true"}, "requester pays"),
        ({"bucket.b-1.accesspoint.arn": "arn:x"}, "fs.s3a.bucket.b-1.accesspoint.arn=arn:x"),
        ({"accesspoint.required": "true"}, "access points"),
        ({"endpoint.fips": "true"}, "FIPS"),
        ({"delegation.token.binding": "x.Y"}, "delegation tokens"),
        ({"endpoint": "http://h/below"}, "neither a host nor a URL"),
        ({"path.style.access": "yes"}, "fs.s3a.path.style.access=yes is neither true nor false"),
        ({"attempts.maximum": "none"}, "whole number"),
        ({"connection.timeout": "long"}, "duration"),
        ({**ROLE, "assumed.role.policy": "{}"}, "policy"),
        ({**ROLE, "assumed.role.sts.endpoint": "sts.x"}, "STS of AWS"),
        ({**ROLE, "access.key": "a", "secret.key": "b"}, "AWS_ACCESS_KEY_ID"),
        ({**ROLE, "fs.s3a.assumed.role.arn": " "}, "wants fs.s3a.assumed.role.arn"),
        (
            {
                "aws.credentials.provider": f"{HADOOP}.auth.ProfileAWSCredentialsProvider",
                "auth.profile.name": "p",
            },
            "AWS_PROFILE",
        ),
    ],
)
def test_what_arrow_cannot_obey_is_refused_by_its_name(settings, told):
    conf = {n if n.startswith("fs.") else f"fs.s3a.{n}": value for n, value in settings.items()}
    with pytest.raises(SettingError, match=told):
        arguments(conf)


def test_what_does_not_matter_is_not_refused():
    assert arguments({"fs.s3a.requester.pays.enabled": "false", "fs.s3a.accesspoint.arn": ""}) == {
        "region": "region-of-b-1"
    }
    assert s3_of(encryption_algorithm="AES256") == {"region": "region-of-b-1"}


def test_an_unknown_region_is_an_error():
    def fail(bucket):
        raise OSError("no network")

    with pytest.raises(
        SettingError, match=r"'b-1' is unknown: no network. Set fs.s3a.endpoint.reg"
    ):
        s3_arguments(s3_conf({}, "b-1"), "b-1", fail)


# ── a store ──────────────────────────────────────────────────────────────────────────────────


def conf_of(s3, **changed):
    return {
        **s3.hadoop,
        "fs.s3a.attempts.maximum": "1",
        **{f"fs.s3a.{name.replace('_', '.')}": value for name, value in changed.items()},
    }


def test_a_bucket_is_opened_and_looked_for_once(s3, bucket):
    s3.mark()
    store = open_store("s3", bucket, conf_of(s3))
    assert [(one.kind, one.bucket) for one in s3.requests()] == [("HEAD", bucket)]
    with store.open_output_stream(f"{bucket}/f") as file:
        file.write(b"x")
    assert s3.keys(bucket) == ["f"]


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (400, "ExpiredToken", "has expired"),
        (403, "RequestTimeTooSkewed", "clock"),
        (301, "PermanentRedirect", "endpoint.region"),
        (403, "SignatureDoesNotMatch", "refuses these credentials"),
        (503, "SlowDown", "does not answer"),
    ],
)
def test_a_refusal_is_told_with_what_to_do(s3, bucket, status, code, told):
    with (
        s3.failing(Rule("status", status=status, code=code, times=9)),
        pytest.raises(SettingError, match=told) as error,
    ):
        open_store("s3a", bucket, conf_of(s3))
    assert f"s3a://{bucket}" in str(error.value)


def test_no_bucket_no_key_and_no_server_are_told_apart_and_no_secret_is_shown(s3, bucket):
    with pytest.raises(SettingError, match="There is no 'no-such-bucket'"):
        open_store("s3a", "no-such-bucket", conf_of(s3))
    with pytest.raises(SettingError, match="refuses these credentials") as error:
        open_store("s3a", bucket, conf_of(s3, access_key="AKIAOTHER", secret_key="hush-hush"))
    assert "AKIAOTHER" not in repr(error.value) and "hush" not in repr(error.value)
    with pytest.raises(SettingError, match="does not answer") as error:
        open_store("s3a", bucket, conf_of(s3, endpoint="http://127.0.0.1:9"))
    assert error.value.getCondition() == "OBJECT_STORE_UNAVAILABLE"


def test_a_servers_words_are_shown_without_keys(s3, bucket):
    rule = Rule("status", status=403, code=s3.hadoop["fs.s3a.secret.key"], times=9)
    with s3.failing(rule), pytest.raises(SettingError) as error:
        open_store("s3a", bucket, conf_of(s3))
    assert rule.code not in str(error.value) and "…" in str(error.value)
    assert error.value.__suppress_context__


def test_settings_that_nobody_understands_are_said_once_and_without_values(s3, bucket, caplog):
    conf = conf_of(
        s3, acl_default="PublicRead", threads_max="64", committer_name="magic", list_version="1",
        custom_token="hush-hush",
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            open_store("s3a", bucket, conf)
    [told] = [record.getMessage() for record in caplog.records]
    assert told.endswith("fs.s3a.acl.default, fs.s3a.custom.token, fs.s3a.list.version")


def test_an_old_pyarrow_is_refused(monkeypatch):
    monkeypatch.setattr(store_options.pa, "__version__", "18.1.0")
    with pytest.raises(SettingError, match=r"need pyarrow 21 or newer.*18\.1\.0"):
        open_store("s3a", "b-1", {})


def test_a_task_has_what_was_handed_over_else_what_sparks_conf_says(monkeypatch):
    class Task:
        pass

    def found(**properties):
        task = Task()
        task._localProperties = {n.replace("_", "."): v for n, v in properties.items()}
        monkeypatch.setattr(store_options, "_task", lambda: task)
        return dict(settings_here())

    spark = {
        "spark_hadoop_fs.s3a.endpoint": "http://one",
        "spark_hadoop_dfs.x": "y",
        "spark_x": "z",
    }
    assert found(**spark) == {"fs.s3a.endpoint": "http://one"}
    assert found(**spark, spark_acidsql_storage_names="") == {}
    given = {
        "spark_acidsql_storage_names": "fs.s3a.access.key,fs.s3a.endpoint,fs.gs.project.id",
        "spark_acidsql_storage_secret_fs.s3a.access.key": "k",
        "spark_acidsql_storage_fs.gs.project.id": "p",
    }
    assert found(**spark, **given) == {
        "fs.s3a.access.key": "k", "fs.s3a.endpoint": "http://one", "fs.gs.project.id": "p",
    }  # fmt: skip
    given["spark_acidsql_storage_fs.s3a.endpoint"] = "http://two"
    assert found(**spark, **given)["fs.s3a.endpoint"] == "http://two"


def test_the_reader_of_a_stream_is_told_by_options_and_gets_no_secrets(monkeypatch):
    monkeypatch.setattr(store_options, "_registered_settings", [])
    pyspark_acidsql._use_store_options({"fs.s3a.endpoint": "http://one", "table": "t"})
    assert settings_here() == {"fs.s3a.endpoint": "http://one"}
    with pytest.raises(SettingError, match=r"fs\.s3a\.secret\.key is a secret") as error:
        pyspark_acidsql._use_store_options({"fs.s3a.secret.key": "hush-hush"})
    assert "hush" not in str(error.value)


# ── Google and Azure: what Arrow is told; no such server is here ─────────────────────────────


def gcs(**settings):
    conf = {f"fs.gs.{name.replace('_', '.')}": value for name, value in settings.items()}
    found = gcs_arguments(gcs_conf(conf))
    assert found.pop("retry_time_limit") == timedelta(minutes=1)
    pafs.GcsFileSystem(**found)  # its own checks
    return found


def test_google_is_opened_with_hadoops_settings(monkeypatch):
    assert gcs() == gcs(auth_type="COMPUTE_ENGINE") == gcs(auth_type="application_default") == {}
    assert gcs(auth_type="UNAUTHENTICATED") == {"anonymous": True}
    assert gcs(project_id="p", storage_root_url="http://h:4443/", auth_type="UNAUTHENTICATED") == {
        "anonymous": True, "project_id": "p", "endpoint_override": "h:4443", "scheme": "http",
    }  # fmt: skip
    account = {"auth_impersonation_service_account": "a@p"}
    assert (
        gcs_arguments(gcs_conf({"fs.gs.auth.impersonation.service.account": "a@p"}))[
            "target_service_account"
        ]
        == account["auth_impersonation_service_account"]
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/key.json")
    key = {"google.cloud.auth.service.account.json.keyfile": "/key.json"}
    assert gcs_arguments(gcs_conf(key)).keys() == {"retry_time_limit"}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("auth.type", "ACCESS_TOKEN_PROVIDER", "is not one of"),
        ("auth.service.account.json.keyfile", "/k", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("encryption.key", "hush-hush", "encryption.key cannot be obeyed"),
        ("requester.pays.mode", "AUTO", "requester"),
        ("storage.root.url", "h", "URL"),
    ],
)
def test_what_google_cannot_have_is_refused(name, value, told):
    with pytest.raises(SettingError, match=told) as error:
        gcs_arguments(gcs_conf({f"fs.gs.{name}": value}))
    assert "hush" not in str(error.value)


CONTAINER = "box@acc.dfs.core.windows.net"
OAUTH = {
    "fs.azure.account.auth.type": "OAuth",
    "fs.azure.account.oauth2.client.id": "id",
    "fs.azure.account.oauth2.client.secret": "hush-hush",
    "fs.azure.account.oauth2.client.endpoint": "https://login.example/tenant/oauth2/token",
}
CLASSES = "org.apache.hadoop.fs.azurebfs"


def azure(conf, authority=CONTAINER):
    found = azure_arguments(azure_conf(conf, authority), authority)
    pafs.AzureFileSystem(**found)  # its own checks
    return found


def test_azure_is_opened_with_hadoops_settings():
    acc = {"account_name": "acc"}
    key, other = "a2V5", "fs.azure.account.key.other.dfs.core.windows.net"
    host = "acc.dfs.core.windows.net"
    assert azure({}) == acc
    assert azure({f"fs.azure.account.key.{host}": key, other: "bm9uZQ=="}) == {
        **acc, "account_key": key,
    }  # fmt: skip
    sas = {
        "fs.azure.account.auth.type": "SharedKey",
        f"fs.azure.account.auth.type.{host}": "SAS",
        "fs.azure.sas.fixed.token": "?of=all",
        f"fs.azure.sas.fixed.token.box.{host}": "?of=box",
    }
    assert azure(sas) == {**acc, "sas_token": "?of=box"}
    provider = "fs.azure.account.oauth.provider.type"
    assert azure({**OAUTH, provider: f"{CLASSES}.oauth2.ClientCredsTokenProvider"}) == {
        **acc, "client_id": "id", "client_secret": "hush-hush", "tenant_id": "tenant",
    }  # fmt: skip
    assert azure({**OAUTH, provider: f"{CLASSES}.oauth2.MsiTokenProvider"}) == {
        **acc, "client_id": "id",
    }  # fmt: skip
    assert azure({**OAUTH, provider: f"{CLASSES}.oauth2.WorkloadIdentityTokenProvider"}) == acc
    assert azure({}, "box@acc.dfs.core.chinacloudapi.cn") == {
        **acc,
        "dfs_storage_authority": ".dfs.core.chinacloudapi.cn",
        "blob_storage_authority": ".blob.core.chinacloudapi.cn",
    }


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"fs.azure.account.auth.type": "Custom"}, "is not one of"),
        ({"fs.azure.account.auth.type": "SharedKey"}, "account.key, which is not set"),
        ({"fs.azure.account.auth.type": "SAS"}, "fs.azure.sas.fixed.token, which is not"),
        (
            {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.token.provider.type": "com.X"},
            "runs in Java only",
        ),
        ({**OAUTH, "fs.azure.account.oauth.provider.type": "com.X"}, "wants one of"),
        (OAUTH, "wants one of"),
        ({"fs.azure.encryption.encoded.client-provided-key": "hush-hush"}, "client's own"),
    ],
)
def test_what_azure_cannot_have_is_refused(conf, told):
    with pytest.raises(SettingError, match=told) as error:
        azure(conf)
    assert "hush" not in str(error.value)
    with pytest.raises(SettingError, match="container and an account"):
        azure({}, "box")
