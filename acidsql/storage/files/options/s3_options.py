"""Hadoop's settings of S3 (``fs.s3a.…``) as arguments of ``pyarrow.fs.S3FileSystem``.

Arrow has a chain of its own that finds credentials: the environment, a profile, the role of an
instance or a pod. Settings override it.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from acidsql.errors import SettingError
from acidsql.storage.files.options.hadoop_conf import HadoopConf, layer

# Beginnings of names after ``fs.s3a.``: settings of speed, memory and Hadoop's own ways of work,
# and those that matter only together with another one.
HARMLESS = (
    "analytics.accelerator.", "assumed.role.", "audit.", "auth.", "block.size", "bucket.probe",
    "buffer.dir", "change.detection.", "committer.", "connection.", "create.conditional.enabled",
    "create.performance", "cross.region.access.enabled", "directory.", "downgrade.",
    "encryption.context", "encryption.cse.", "encryption.key", "etag.", "executor.",
    "experimental.", "fast.", "impl", "input.", "list.threads", "max.total.tasks",
    "metadatastore.", "multipart.", "optimized.", "paging.", "performance.", "prefetch.",
    "readahead.", "rename.", "retry.", "s3guard.", "select.", "server-side-encryption.key",
    "socket.", "ssl.channel.mode", "statistics.", "threads.", "user.agent.", "vectored.",
)  # fmt: skip

_HADOOP, _AWS1, _AWS2 = (
    "org.apache.hadoop.fs.s3a.", "com.amazonaws.auth.", "software.amazon.awssdk.auth.credentials.",
)  # fmt: skip
_SIMPLE = f"{_HADOOP}SimpleAWSCredentialsProvider"
_TEMPORARY = f"{_HADOOP}TemporaryAWSCredentialsProvider"
_ROLE = f"{_HADOOP}auth.AssumedRoleCredentialProvider"
_ANONYMOUS = {
    f"{_HADOOP}AnonymousAWSCredentialsProvider",
    f"{_AWS2}AnonymousCredentialsProvider",
    f"{_AWS1}AnonymousAWSCredentials",
}
# Providers that look where Arrow's chain looks, too.
_ENVIRONMENT = f"{_AWS2}EnvironmentVariableCredentialsProvider"
_PROFILE = f"{_HADOOP}auth.ProfileAWSCredentialsProvider"
_IN_CHAIN = {
    f"{_HADOOP}auth.IAMInstanceCredentialsProvider", _PROFILE,
    f"{_AWS1}ContainerCredentialsProvider", f"{_AWS1}DefaultAWSCredentialsProviderChain",
    f"{_AWS1}EC2ContainerCredentialsProviderWrapper",
    f"{_AWS1}EnvironmentVariableCredentialsProvider",
    f"{_AWS1}InstanceProfileCredentialsProvider", f"{_AWS1}WebIdentityTokenCredentialsProvider",
    f"{_AWS1}profile.ProfileCredentialsProvider",
    f"{_AWS2}ContainerCredentialsProvider", f"{_AWS2}DefaultCredentialsProvider", _ENVIRONMENT,
    f"{_AWS2}InstanceProfileCredentialsProvider", f"{_AWS2}ProfileCredentialsProvider",
    f"{_AWS2}WebIdentityTokenFileCredentialsProvider",
}  # fmt: skip
_PROVIDERS, _ROLE_PROVIDERS = "aws.credentials.provider", "assumed.role.credentials.provider"
_DEFAULT = {
    _PROVIDERS: [_TEMPORARY, _SIMPLE, _ENVIRONMENT],  # then the instance, as in Arrow's chain
    _ROLE_PROVIDERS: [_SIMPLE, _ENVIRONMENT],
}

_CANNOT = "cannot be obeyed: acidsql reads and writes by Arrow, which "
_REFUSED = {
    "accesspoint.arn": f"{_CANNOT}knows no access points. Name the bucket itself",
    "accesspoint.required": f"{_CANNOT}knows no access points. Name the bucket itself",
    "requester.pays.enabled": f"{_CANNOT}cannot say that the requester pays",
    "endpoint.fips": f"{_CANNOT}has no such switch. Name the FIPS endpoint in fs.s3a.endpoint",
    "delegation.token.binding": f"{_CANNOT}knows no delegation tokens of Hadoop's",
}
_REFUSED_OF_ROLES = {
    "assumed.role.policy": f"{_CANNOT}cannot narrow a role. Give the role itself this policy",
    "assumed.role.sts.endpoint": f"{_CANNOT}asks the STS of AWS for a role",
}
_REFUSED_OF_PROFILES = {
    "auth.profile.name": f"{_CANNOT}takes a profile's name from the environment. Set AWS_PROFILE "
    "there, on executors, too",
    "auth.profile.file": f"{_CANNOT}takes the profiles' file from the environment. Set "
    "AWS_SHARED_CREDENTIALS_FILE there, on executors, too",
}
_ENCRYPTIONS = ("encryption.algorithm", "server-side-encryption-algorithm")
_OF_THE_STORE = "AES256"  # what S3 does with each object

# s3.REGION.amazonaws.com says no more than its region; others are endpoints of their own.
_REGIONAL = re.compile(r"s3[.-]([a-z]+(?:-[a-z]+)+-\d+)\.amazonaws\.com(?:\.cn)?")
_CENTRAL = "s3.amazonaws.com"
_REGION_INSIDE = re.compile(r"\.([a-z]+(?:-[a-z]+)+-\d+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")
_IN_HOST = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")  # a bucket in the name of a host
_ANY_REGION = "us-east-1"  # for stores of others, which ask for no region

# Seconds. A server may be silent while it copies a large object; Arrow would give up after 3.
_SILENCE, _CONNECT = 200.0, 10.0


def s3_conf(conf: Mapping[str, str], bucket: str) -> HadoopConf:
    """Return the settings of one bucket: ``fs.s3a.bucket.NAME.…`` override ``fs.s3a.…``."""
    return HadoopConf(
        layer(conf, "fs.s3a.", except_prefix="fs.s3a.bucket."),
        layer(conf, f"fs.s3a.bucket.{bucket}."),
    )


def s3_arguments(
    hadoop_conf: HadoopConf, bucket: str, resolve: Callable[[str], str]
) -> dict[str, Any]:
    """Return the arguments of ``pyarrow.fs.S3FileSystem`` for one bucket: who authenticates, where
    the store is, the proxy, the timeouts, ``allow_delayed_open``, and a ``tls_ca_file_path`` if the
    environment has AWS_CA_BUNDLE.

    Args:
        hadoop_conf: The settings of the bucket.
        bucket: Its name.
        resolve: Asks AWS for the region of a bucket. It is called only if no setting, host or
            environment variable says the region.

    Raises:
        SettingError: A setting is wrong, or Arrow cannot obey it; or the region is unknown.
    """
    hadoop_conf.refuse(_REFUSED)
    _refuse_encryption(hadoop_conf)
    return {
        "allow_delayed_open": True,  # a small object is one request instead of three
        **_authentication_arguments(hadoop_conf),
        **_endpoint_arguments(hadoop_conf, bucket, resolve),
        **_proxy_arguments(hadoop_conf),
        **_timeout_arguments(hadoop_conf),
        # Arrow cannot read Java's trust store; this is the name of other clients of S3.
        **({"tls_ca_file_path": ca} if (ca := os.environ.get("AWS_CA_BUNDLE")) else {}),
    }


def _refuse_encryption(hadoop_conf: HadoopConf) -> None:
    """Raise SettingError if a setting asks for another encryption than S3's own (AES256)."""
    for name in _ENCRYPTIONS:
        if (algorithm := hadoop_conf.text(name)) is not None and algorithm != _OF_THE_STORE:
            raise hadoop_conf.setting_error(
                name,
                f"{_CANNOT}cannot ask for it. Give the bucket a default encryption (SSE-KMS), and "
                "leave this setting out; keys of the client's own (SSE-C, CSE) are not supported",
            )


# ── credentials ──────────────────────────────────────────────────────────────────────────────


def _authentication_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the arguments of the first provider that finds credentials, as in Hadoop: the keys
    (``access_key``, ``secret_key``, ``session_token``, which may be None), ``anonymous``, or those
    of a role; empty for a provider that Arrow's own chain stands for. Raises SettingError if only
    one half of a key is set, a provider is unknown (``_providers``), the provider of profiles gets
    a setting that names one, a role cannot be assumed, or no provider finds credentials.
    """
    keys = {
        "access_key": hadoop_conf.text("access.key"),
        "secret_key": hadoop_conf.text("secret.key"),
        "session_token": hadoop_conf.text("session.token"),
    }
    if (keys["access_key"] is None) != (keys["secret_key"] is None):
        present, absent = ("access", "secret") if keys["access_key"] else ("secret", "access")
        name = hadoop_conf.name(f"{present}.key")
        raise SettingError(
            f"{name} is set, and fs.s3a.{absent}.key is not. Both make a key.", name=name
        )
    for provider in _providers(hadoop_conf, _PROVIDERS):
        if provider == _TEMPORARY and all(keys.values()):
            return keys
        if provider == _SIMPLE and keys["access_key"]:
            return {**keys, "session_token": None}
        if provider in _ANONYMOUS:
            return {"anonymous": True}
        if provider == _ROLE:
            return _role_arguments(hadoop_conf)
        if provider == _PROFILE:
            hadoop_conf.refuse(_REFUSED_OF_PROFILES)
        if provider in _IN_CHAIN:
            return {}
    raise hadoop_conf.setting_error(
        _PROVIDERS, "finds no credentials: the settings of the keys that it wants are not set"
    )


def _providers(hadoop_conf: HadoopConf, setting: str) -> list[str]:
    """Return the provider classes that a setting lists, or Hadoop's default, up to and including
    the first one that Arrow's own chain stands for. Raises SettingError if one of the classes up to
    there is none that this module knows: it counts as one that runs in Java only.
    """
    setting_text = hadoop_conf.text(setting)
    classes = (
        _DEFAULT[setting]
        if setting_text is None
        else re.split(r"[\s,]+", setting_text.strip(" ,\n\t"))
    )
    providers = []
    for provider in classes:
        if provider not in {_SIMPLE, _TEMPORARY, _ROLE, *_ANONYMOUS, *_IN_CHAIN}:
            raise hadoop_conf.setting_error(
                setting,
                f"names {provider}, which runs in Java only. Python opens the store, too: give it "
                "keys, or name a provider of the environment, a profile, an instance or a role",
            )
        providers.append(provider)
        if provider in _IN_CHAIN:
            break
    return providers


def _role_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the arguments to assume a role: ``role_arn``, ``session_name`` and ``external_id``
    (None if unset). Raises SettingError if no role is named, if a setting narrows it or names
    another STS, or if the keys for it are settings: Arrow takes them from the environment, a
    profile or the instance only. So the first provider for the role, apart from that of keys that
    are not set, must be one of these.
    """
    arn = hadoop_conf.text("assumed.role.arn")
    if arn is None:
        raise hadoop_conf.setting_error(
            _PROVIDERS, "wants fs.s3a.assumed.role.arn, which is not set"
        )
    hadoop_conf.refuse(_REFUSED_OF_ROLES)
    providers = _providers(hadoop_conf, _ROLE_PROVIDERS)
    has_keys = hadoop_conf.text("access.key") is not None
    if providers[0] == _SIMPLE and not has_keys:
        providers = providers[1:]
    if not providers or providers[0] not in _IN_CHAIN:
        raise hadoop_conf.setting_error(
            _PROVIDERS,
            "cannot assume a role with the keys of fs.s3a.access.key: Arrow takes the keys for it "
            "from the environment, a profile or the instance. Set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY there, on executors, too",
        )
    return {
        "role_arn": arn,
        "session_name": hadoop_conf.text("assumed.role.session.name"),
        "external_id": hadoop_conf.text("assumed.role.external.id"),
    }


# ── where the store is, and how it is reached ────────────────────────────────────────────────


def _endpoint_arguments(
    hadoop_conf: HadoopConf, bucket: str, resolve: Callable[[str], str]
) -> dict[str, Any]:
    """Return the arguments that lead to the store. Without an endpoint, and for AWS's own host or
    that of a region, it is ``region`` alone. For another host they are ``endpoint_override`` (host
    and port), ``scheme``, ``region`` and ``force_virtual_addressing`` (the bucket stands in the
    host's name). The region is that of the settings, else of the host's name, else of the
    environment; after these AWS is asked, and another host gets ``us-east-1``.

    Raises SettingError if the endpoint is no host or URL of one, or AWS does not tell the region.
    """
    endpoint, is_secure = (
        hadoop_conf.text("endpoint"),
        hadoop_conf.flag("connection.ssl.enabled", True),
    )
    is_path_style, region = (
        hadoop_conf.flag("path.style.access"),
        hadoop_conf.text("endpoint.region"),
    )
    if endpoint is None:
        return {"region": region or _bucket_region(bucket, resolve)}
    url = urlsplit(
        endpoint if "://" in endpoint else f"{'https' if is_secure else 'http'}://{endpoint}"
    )
    if url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/") or url.query:
        raise hadoop_conf.setting_error(
            "endpoint", "is neither a host nor a URL of one, as https://host:9000"
        )
    if url.hostname == _CENTRAL:
        return {"region": region or _bucket_region(bucket, resolve)}
    if (regional_host := _REGIONAL.fullmatch(url.hostname)) is not None:
        return {"region": region or regional_host[1]}
    region_in_host = _REGION_INSIDE.search(url.hostname)
    virtual = not is_path_style and not _is_address(url.hostname) and _is_host_name(bucket)
    return {
        "endpoint_override": url.netloc,
        "scheme": url.scheme,
        "region": region
        or (region_in_host[1] if region_in_host else _environment_region() or _ANY_REGION),
        "force_virtual_addressing": virtual,
    }


def _bucket_region(bucket: str, resolve: Callable[[str], str]) -> str:
    """Return the region of the environment, or else the one that AWS tells for the bucket. Raises
    SettingError if AWS does not tell.
    """
    region = _environment_region()
    if region is not None:
        return region
    try:
        return resolve(bucket)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"The region of the bucket '{bucket}' is unknown: {error}. Set fs.s3a.endpoint.region, "
            "or fs.s3a.endpoint if it is no bucket of AWS.",
            bucket=bucket,
        ) from error


def _environment_region() -> str | None:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or None


def _is_address(host: str) -> bool:
    """Whether a host is an IP address, or ``localhost``."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _is_host_name(bucket: str) -> bool:
    """Whether a bucket's name can be the first part of a host's name: 3 to 63 lower-case letters,
    digits and hyphens, with no hyphen at an end.
    """
    return _IN_HOST.fullmatch(bucket) is not None


def _proxy_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the argument for a proxy, ``proxy_options``: scheme, host, port (by default 443, or 80
    if the store is spoken to without TLS), and a login if a user is set; empty if no ``proxy.host``
    is set. Raises SettingError, even then, for a port that is no positive number or a
    ``proxy.ssl.enabled`` that is no boolean.
    """
    host, is_secure = hadoop_conf.text("proxy.host"), hadoop_conf.flag("proxy.ssl.enabled")
    user, password = hadoop_conf.text("proxy.username"), hadoop_conf.text("proxy.password")
    port = hadoop_conf.positive_integer("proxy.port")
    if host is None:
        return {}
    # Hadoop's default is by the store's scheme, not by the proxy's.
    default = 443 if hadoop_conf.flag("connection.ssl.enabled", True) else 80
    options = {
        "scheme": "https" if is_secure else "http",
        "host": host,
        "port": port or default,
    }
    login = {"username": user, "password": password} if user else {}
    return {"proxy_options": {**options, **login}}


def _timeout_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return ``request_timeout`` and ``connect_timeout`` in seconds, by default 200 and 10, and a
    ``retry_strategy`` if the number of attempts is set. Raises SettingError if a setting is no
    duration, or no positive number.
    """
    attempts = hadoop_conf.positive_integer("attempts.maximum")
    limits: dict[str, Any] = {
        "request_timeout": hadoop_conf.seconds("connection.timeout") or _SILENCE,
        "connect_timeout": hadoop_conf.seconds("connection.establish.timeout") or _CONNECT,
    }
    if attempts is not None:
        limits["retry_strategy"] = pafs.AwsStandardS3RetryStrategy(max_attempts=attempts)
    return limits
