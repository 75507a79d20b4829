"""Hadoop's settings of Azure's storage (``fs.azure.…``) as arguments of Arrow's file system."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from acidsql.errors import SettingError
from acidsql.storage.files.options.hadoop_conf import HadoopConf, layer

# Beginnings of names after ``fs.azure.``: settings of speed, memory and Hadoop's own ways of work.
HARMLESS = (
    "abfs.", "account.hns.enabled", "account.expected.", "account.oauth", "account.operation.",
    "account.throttling.", "always.", "analysis.", "appendblob.", "atomic.", "authorization",
    "block.", "buffer.", "buffered.", "cluster.", "concurrentRequestCount.", "createRemote",
    "custom.token.fetch.", "data.blocks.", "delete.", "disable.", "enable.", "identity.", "impl",
    "infinite-lease.", "io.", "list.", "local.", "networking.", "oauth.token.fetch.", "page.",
    "rate.limit", "read.", "readahead", "rename.", "sas.expiry.", "sas.token.renew.",
    "saskey.", "secure.", "selfthrottling.", "shellkeyprovider.", "skipUser", "ssl.channel.",
    "store.", "tracingheader.", "tracingmetricheader.", "use", "user.agent.", "write.",
)  # fmt: skip

_DFS = "dfs.core.windows.net"
_OTHER_ACCOUNT = re.compile(r"\.[a-z0-9]{3,24}\.(dfs|blob)\.")
_CLASSES = "org.apache.hadoop.fs.azurebfs."
_FIXED_SAS = f"{_CLASSES}sas.FixedSASTokenProvider"
_BY_SECRET = f"{_CLASSES}oauth2.ClientCredsTokenProvider"
_BY_IDENTITY = f"{_CLASSES}oauth2.MsiTokenProvider"
_BY_WORKLOAD = f"{_CLASSES}oauth2.WorkloadIdentityTokenProvider"
_CANNOT = "cannot be obeyed: acidsql reads and writes by Arrow, which "
_OWN_KEYS = f"{_CANNOT}knows no keys of the client's own"
_REFUSED = {
    "client-provided-encryption-key": _OWN_KEYS,
    "encryption.encoded.client-provided-key": _OWN_KEYS,
    "encryption.context.provider.type": _OWN_KEYS,
    "account.keyprovider": f"{_CANNOT}runs no Java. Give the key itself",
}


def azure_conf(conf: Mapping[str, str], authority: str) -> HadoopConf:
    """Return the settings of ``container@account.dfs.core.windows.net``.

    A name may end with the account's host, or with the container and this host. Names with another
    account's host are left out. The container's setting wins over the account's, and that over all.
    """
    container, _, host = authority.partition("@")
    every, account_options, container_options = {}, {}, {}
    for short, setting in layer(conf, "fs.azure.").items():
        if short.endswith(f".{container}.{host}"):
            container_options[short.removesuffix(f".{container}.{host}")] = setting
        elif short.endswith(f".{host}"):
            account_options[short.removesuffix(f".{host}")] = setting
        elif not _OTHER_ACCOUNT.search(short):
            every[short] = setting
    return HadoopConf(every, account_options, container_options)


def azure_arguments(hadoop_conf: HadoopConf, authority: str) -> dict[str, Any]:
    """Return the arguments of ``pyarrow.fs.AzureFileSystem`` for a container: the account's name,
    who authenticates, and, for a host outside of ``dfs.core.windows.net``, the two ends of the
    host's name (``dfs_storage_authority``, ``blob_storage_authority``).

    Raises:
        SettingError: A setting is wrong, or Arrow cannot obey it; or the authority is not
            ``container@account.dfs.…``.
    """
    container, _, host = authority.partition("@")
    account, _, domain = host.partition(".")
    if not container or not account or not domain.startswith("dfs."):
        raise SettingError(
            f"'{authority}' is not a container and an account of Azure, as in "
            f"abfss://container@account.{_DFS}/path.",
        )
    hadoop_conf.refuse(_REFUSED)
    places = {
        "dfs_storage_authority": f".{domain}",
        "blob_storage_authority": f".blob.{domain.removeprefix('dfs.')}",
    }
    return {
        "account_name": account,
        **(places if domain != _DFS else {}),
        **_authentication_arguments(hadoop_conf),
    }


def _authentication_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the arguments that say as whom Arrow authenticates, by ``account.auth.type``: a key
    (SharedKey, the default), a SAS token, or an OAuth client. Empty if no type and no key is set:
    then Arrow finds the credentials by itself.

    Raises SettingError if the kind of authentication is unknown, or its settings are missing.
    """
    auth_type = hadoop_conf.text("account.auth.type")
    key, sas = hadoop_conf.text("account.key"), hadoop_conf.text("sas.fixed.token")
    kind = auth_type or "SharedKey"
    if kind == "SharedKey":
        if key is None and auth_type is not None:
            raise hadoop_conf.setting_error(
                "account.auth.type", "wants fs.azure.account.key, which is not set"
            )
        return {"account_key": key} if key else {}
    if kind == "SAS":
        return _sas_arguments(hadoop_conf, sas)
    if kind == "OAuth":
        return _oauth_arguments(hadoop_conf)
    raise hadoop_conf.setting_error("account.auth.type", "is not one of SharedKey, SAS, OAuth")


def _sas_arguments(hadoop_conf: HadoopConf, token: str | None) -> dict[str, Any]:
    """Return the argument for a fixed SAS token, ``{"sas_token": token}``. Raises SettingError if
    ``token`` is None, or if a class in Java should provide it.
    """
    if (hadoop_conf.text("sas.token.provider.type") or _FIXED_SAS) != _FIXED_SAS:
        raise hadoop_conf.setting_error(
            "sas.token.provider.type",
            "runs in Java only. Python opens the store, too: give it fs.azure.sas.fixed.token",
        )
    if token is None:
        raise hadoop_conf.setting_error(
            "account.auth.type", "wants fs.azure.sas.fixed.token, which is not set"
        )
    return {"sas_token": token}


def _oauth_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the arguments for OAuth, by the provider: ``client_id``, ``client_secret`` and
    ``tenant_id`` (the first part of the endpoint's path) of a client; the ``client_id`` of a
    managed identity, if it is set; nothing for a workload identity.

    Raises SettingError for another provider, or if the client's settings are missing.
    """
    provider = hadoop_conf.text("account.oauth.provider.type")
    client = hadoop_conf.text("account.oauth2.client.id")
    if provider == _BY_WORKLOAD:
        return {}  # Arrow's chain has it
    if provider == _BY_IDENTITY:
        return {"client_id": client} if client else {}
    if provider != _BY_SECRET:
        raise hadoop_conf.setting_error(
            "account.oauth.provider.type" if provider else "account.auth.type",
            f"wants one of {_BY_SECRET}, {_BY_IDENTITY}, {_BY_WORKLOAD} in "
            "fs.azure.account.oauth.provider.type",
        )
    secret, url = (
        hadoop_conf.text(f"account.oauth2.client.{name}") for name in ("secret", "endpoint")
    )
    tenant = urlsplit(url or "").path.strip("/").partition("/")[0]
    if not (client and secret and tenant):
        raise hadoop_conf.setting_error(
            "account.oauth.provider.type",
            "wants fs.azure.account.oauth2.client.id, .secret, and .endpoint, which has the tenant "
            "in its path",
        )
    return {"client_id": client, "client_secret": secret, "tenant_id": tenant}
