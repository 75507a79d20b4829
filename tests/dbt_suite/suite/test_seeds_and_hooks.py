"""Seeds, hooks, copies and names of columns."""

import pytest
from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseDuplicateHooksInConfigs as TestDuplicateHooksInConfigs,
)
from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseHooksRefsOnSeeds as TestHooksRefsOnSeeds,
)
from dbt.tests.adapter.hooks.test_model_hooks import (
    BasePrePostModelHooksOnSeeds as TestPrePostModelHooksOnSeeds,
)
from dbt.tests.adapter.hooks.test_model_hooks import (
    BasePrePostModelHooksOnSnapshots as TestPrePostModelHooksOnSnapshots,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks as TestAfterRunHooks
from dbt.tests.adapter.simple_copy.test_simple_copy import (
    EmptyModelsArentRunBase as TestEmptyModelsArentRun,
)
from dbt.tests.adapter.simple_copy.test_simple_copy import SimpleCopyBase as TestSimpleCopy
from dbt.tests.adapter.simple_seed import seeds
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedWithBOM,
)
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseSimpleSeedEnabledViaConfig as TestSimpleSeedEnabledViaConfig,
)
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseTestEmptySeed as TestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import run_dbt


class TestBasicSeedTests(BaseBasicSeedTests):
    def test_simple_seed_full_refresh_flag(self, project):
        """The suite's test expects that a full refresh drops the views over a seed. A seed of ours
        is replaced, and they stay."""
        self._build_relations_for_test(project)
        self._check_relation_end_state(
            run_result=run_dbt(["seed", "--full-refresh"]), project=project, exists=True
        )


class TestSeedConfigFullRefreshOn(BaseSeedConfigFullRefreshOn):
    def test_simple_seed_full_refresh_config(self, project):
        self._build_relations_for_test(project)
        self._check_relation_end_state(run_result=run_dbt(["seed"]), project=project, exists=True)


class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    pass


class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @staticmethod
    def seed_enabled_types():
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types():
        names = ["seed_id_str", "looks_like_a_bool", "looks_like_a_date"]
        return dict.fromkeys(names, "string")

    @pytest.fixture(scope="class")
    def models(self):
        from dbt.tests.adapter.simple_seed import fixtures

        schema = fixtures.properties__schema_yml
        for postgresql, spark in {
            "character varying(255)": "string",
            "text": "string",
            "integer": "bigint",
            "timestamp without time zone": "timestamp",
        }.items():
            schema = schema.replace(f"type: {postgresql}", f"type: {spark}")
        return {"schema.yml": schema}
