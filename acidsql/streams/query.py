"""What Spark tells, within ``foreachBatch``, about the streaming query of a batch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.session.streaming import local_property, run_and_checkpoint


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """The streaming query that calls the sink.

    Attributes:
        id: The query's id. It is in the checkpoint, and stays the same after a restart.
        run_id: The id of this run of the query.
        checkpoint: The directory of the checkpoint; None if Spark does not tell.
    """

    id: str
    run_id: str
    checkpoint: str | None

    def fingerprint(self, batch_id: int) -> str:
        """Return a hash (32 hexadecimal digits) of the file of offsets that the checkpoint has for
        a batch; "" if it cannot be read, or the checkpoint is unknown.

        A batch that runs again after a crash has the same offsets file. Two queries that use copies
        of one checkpoint have different ones: the file has the time of planning.
        """
        if self.checkpoint is None:
            return ""
        path = f"{self.checkpoint}/offsets/{batch_id}"
        try:
            with filesystem_for(path).open_input(path) as file:
                return hashlib.sha256(file.read()).hexdigest()[:32]
        except Exception:  # a file system that we do not know: then this check is left out
            return ""


def running_query(batch: DataFrame, owner: SparkSession) -> RunningQuery | None:
    """Return the streaming query whose ``foreachBatch`` passes this batch; None if none does, as
    when a program calls the sink itself. If the query does not tell its run, the job group does.

    ``owner``: the session that started the query. Only it can be asked for the checkpoint.
    """
    query_id = local_property(batch.sparkSession, "sql.streaming.queryId")
    if query_id is None:
        return None
    run_id, checkpoint = run_and_checkpoint(owner, query_id)
    if run_id is None:
        # Spark runs the jobs of a streaming query in a job group that is called as the run.
        run_id = local_property(batch.sparkSession, "spark.jobGroup.id") or ""
    return RunningQuery(query_id, run_id, checkpoint)
