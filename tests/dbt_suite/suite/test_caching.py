"""dbt's cache of tables and views. The suite also compares databases, which Spark has not."""

from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.util import run_dbt


class WithoutDatabases:
    def run_and_inspect_cache(self, project, run_args=None):
        names = []
        for _ in range(2):
            run_dbt(run_args)
            (relation,) = project.adapter.cache.relations
            names.append((relation.schema.lower(), relation.identifier.lower()))
        assert names == [(project.test_schema.lower(), "model")] * 2


class TestCachingLowercaseModel(WithoutDatabases, BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(WithoutDatabases, BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(WithoutDatabases, BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(WithoutDatabases, BaseNoPopulateCache):
    pass
