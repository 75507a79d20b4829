"""Incremental models: all strategies, keys, predicates, columns and changes of columns."""

import pytest
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental as TestIncremental,
)
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncrementalBadStrategy as TestIncrementalBadStrategy,
)
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncrementalNotSchemaChange as TestIncrementalNotSchemaChange,
)
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import (
    BaseMergeExcludeColumns as TestMergeExcludeColumns,
)
from dbt.tests.adapter.incremental.test_incremental_microbatch import (
    BaseMicrobatch as TestMicrobatch,
)
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChange,
)
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.adapter.simple_seed.test_seed import SeedConfigBase
from dbt.tests.util import check_relations_equal, run_dbt


def models_config(**configs):
    """A class with a project whose models have these configs."""

    class Configured:
        @pytest.fixture(scope="class")
        def project_config_update(self):
            return {"models": {f"+{name}": value for name, value in configs.items()}}

    return Configured


class TestOnSchemaChangeByAppend(
    models_config(incremental_strategy="append"), BaseIncrementalOnSchemaChange
):
    pass


class TestOnSchemaChangeByMerge(
    models_config(incremental_strategy="merge", unique_key="id"), BaseIncrementalOnSchemaChange
):
    pass


class TestUniqueKeyByMerge(models_config(incremental_strategy="merge"), BaseIncrementalUniqueKey):
    pass


class TestUniqueKeyByDeleteAndInsert(
    models_config(incremental_strategy="delete+insert"), BaseIncrementalUniqueKey
):
    pass


class TestPredicatesByMerge(
    models_config(
        incremental_strategy="merge", incremental_predicates=["dbt_internal_dest.id != 2"]
    ),
    BaseIncrementalPredicates,
):
    pass


class TestPredicatesByDeleteAndInsert(
    models_config(incremental_strategy="delete+insert", incremental_predicates=["id != 2"]),
    BaseIncrementalPredicates,
):
    pass


class TestPredicatesUnderTheirOldName(
    models_config(incremental_strategy="delete+insert", predicates=["id != 2"]),
    BaseIncrementalPredicates,
):
    pass


def two_runs(config: str, first: str, second: str) -> str:
    """An incremental model with some rows on its first run, and others on later ones."""
    return (
        f"{{{{ config(materialized='incremental', {config}) }}}}\n"
        f"{{% if is_incremental() %}}\n{second}\n{{% else %}}\n{first}\n{{% endif %}}"
    )


FIRST = """
select cast(1 as bigint) as id, 'hello' as msg, 'blue' as color
union all select cast(2 as bigint), 'goodbye', 'red'
"""
SECOND = """
select cast(2 as bigint) as id, 'yo' as msg, 'green' as color
union all select cast(3 as bigint), 'anyway', 'purple'
"""


class TestStrategies(SeedConfigBase):
    """Each strategy of dbt-spark's tests, over the same two runs."""

    @pytest.fixture(scope="class")
    def models(self):
        configs = {
            "by_default": "",
            "by_default_with_key": "unique_key='id'",
            "appended": "incremental_strategy='append'",
            "merged_without_key": "incremental_strategy='merge'",
            "merged": "incremental_strategy='merge', unique_key='id'",
            "merged_message": "incremental_strategy='merge', unique_key='id', "
            "merge_update_columns=['msg']",
            "overwritten": "incremental_strategy='insert_overwrite'",
            "overwritten_partitions": "incremental_strategy='insert_overwrite', "
            "partition_by='color'",
            "replaced": "incremental_strategy='delete+insert', unique_key=['id']",
        }
        return {
            f"{name}.sql": two_runs(config or "tags=[]", FIRST, SECOND)
            for name, config in configs.items()
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        appended = "1,hello,blue\n2,goodbye,red\n2,yo,green\n3,anyway,purple\n"
        merged = "1,hello,blue\n2,yo,green\n3,anyway,purple\n"
        rows = {
            "appended": appended,
            "merged": merged,
            "message": "1,hello,blue\n2,yo,red\n3,anyway,purple\n",
            "overwritten": "2,yo,green\n3,anyway,purple\n",
        }
        return {f"expected_{name}.csv": f"id,msg,color\n{text}" for name, text in rows.items()}

    def test_each_strategy_gives_its_rows(self, project):
        run_dbt(["seed"])
        run_dbt(["run"])
        run_dbt(["run"])
        expected = {
            "by_default": "appended",
            "by_default_with_key": "merged",
            "appended": "appended",
            "merged_without_key": "appended",
            "merged": "merged",
            "merged_message": "message",
            "overwritten": "overwritten",
            "overwritten_partitions": "appended",
            "replaced": "merged",
        }
        for model, seed in expected.items():
            check_relations_equal(project.adapter, [model, f"expected_{seed}"])


class TestBadStrategies(SeedConfigBase):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "bad_format.sql": two_runs("file_format='delta'", FIRST, SECOND),
            "bad_strategy.sql": two_runs("incremental_strategy='something_else'", FIRST, SECOND),
        }

    def test_each_is_refused_by_name(self, project):
        results = run_dbt(["run"], expect_pass=False)
        messages = {result.node.name: result.message for result in results}
        assert "file_format 'delta' is not supported" in messages["bad_format"]
        assert "get_incremental_something_else_sql" in messages["bad_strategy"]


TestMicrobatch.__doc__ = "Without partitions: acidsql replaces the rows of a batch by its times."
assert TestIncremental and TestIncrementalBadStrategy and TestIncrementalNotSchemaChange
assert TestMergeExcludeColumns
