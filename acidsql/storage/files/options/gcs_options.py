"""Hadoop's settings of Google Cloud Storage (``fs.gs.…``) as arguments of Arrow's file system."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from acidsql.storage.files.options.hadoop_conf import HadoopConf, layer

# Beginnings of names after ``fs.gs.``: settings of speed, memory and Hadoop's own ways of work.
HARMLESS = (
    "auth.service.account.", "batch.", "block.size", "bucket.delete.enable", "client.", "copy.",
    "create.items.conflict.check.enable", "fadvise.", "glob.", "grpc.", "hierarchical.", "http.",
    "impl", "implicit.", "inputstream.", "io.", "lazy.", "list.", "marker.file.pattern", "max.",
    "metadata.", "operation.", "outputstream.", "performance.", "permissions.", "reported.",
    "rewrite.", "status.", "token.", "tracelog.", "working.dir", "write.",
)  # fmt: skip

_WAIT = timedelta(minutes=1)  # Arrow's default is 15 minutes, even if no server is there
# Arrow finds the credentials of these by itself.
_IN_CHAIN = ("COMPUTE_ENGINE", "APPLICATION_DEFAULT")
_KEY_FILE = "auth.service.account.json.keyfile"
_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_CANNOT = "cannot be obeyed: acidsql reads and writes by Arrow, which "


def gcs_conf(conf: Mapping[str, str]) -> HadoopConf:
    """Return the settings ``fs.gs.…``; they override those with the older names
    ``google.cloud.auth.…``.
    """
    old = {f"auth.{short}": setting for short, setting in layer(conf, "google.cloud.auth.").items()}
    return HadoopConf(old, layer(conf, "fs.gs."))


def gcs_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the arguments of ``pyarrow.fs.GcsFileSystem``: who authenticates, the project and
    another server's address if they are set, and one minute as the limit of retries.

    Raises:
        SettingError: A setting is wrong, or Arrow cannot obey it.
    """
    hadoop_conf.refuse(
        {
            "encryption.algorithm": f"{_CANNOT}knows no keys of the client's own",
            "encryption.key": f"{_CANNOT}knows no keys of the client's own",
            "proxy.address": f"{_CANNOT}takes a proxy from the environment: https_proxy",
        }
    )
    if (hadoop_conf.text("requester.pays.mode") or "DISABLED").upper() != "DISABLED":
        raise hadoop_conf.setting_error(
            "requester.pays.mode", f"{_CANNOT}cannot say that the requester pays"
        )
    return {
        "retry_time_limit": _WAIT,
        **_authentication_arguments(hadoop_conf),
        **({"project_id": project} if (project := hadoop_conf.text("project.id")) else {}),
        **_endpoint_arguments(hadoop_conf),
    }


def _authentication_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the arguments that say as whom Arrow authenticates: ``anonymous`` for UNAUTHENTICATED,
    or the impersonated account, ``target_service_account``. Empty means that Arrow finds the
    credentials by itself.

    Raises SettingError for a key file that GOOGLE_APPLICATION_CREDENTIALS does not name, and for an
    ``auth.type`` that is unknown, or wants a key file where none is set.
    """
    kind, file = (hadoop_conf.text("auth.type") or "").upper(), hadoop_conf.text(_KEY_FILE)
    if kind == "UNAUTHENTICATED":
        return {"anonymous": True}
    if kind in ("", "SERVICE_ACCOUNT_JSON_KEYFILE") and file is not None:
        if file != os.environ.get(_VARIABLE):
            raise hadoop_conf.setting_error(
                _KEY_FILE,
                f"{_CANNOT}takes this file from the environment. Set {_VARIABLE} to its path, on "
                "executors, too, before Python starts",
            )
    elif kind not in ("", *_IN_CHAIN):
        raise hadoop_conf.setting_error(
            "auth.type", f"is not one of {', '.join(_IN_CHAIN)}, UNAUTHENTICATED"
        )
    account = hadoop_conf.text("auth.impersonation.service.account")
    return {"target_service_account": account} if account else {}


def _endpoint_arguments(hadoop_conf: HadoopConf) -> dict[str, Any]:
    """Return the arguments for another server than Google's, ``endpoint_override`` (host and port)
    and ``scheme``; none if no URL is set. Raises SettingError if the URL has no host, or its scheme
    is not http or https.
    """
    root_url = hadoop_conf.text("storage.root.url")
    if root_url is None:
        return {}
    url = urlsplit(root_url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise hadoop_conf.setting_error(
            "storage.root.url", "is no URL of a host, as https://host:4443"
        )
    return {"endpoint_override": url.netloc, "scheme": url.scheme}
