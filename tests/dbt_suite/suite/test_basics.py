"""Materializations, ephemeral models, tests of data, and relations."""

from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod as TestAdapterMethod
from dbt.tests.adapter.basic.test_base import (
    BaseSimpleMaterializations as TestSimpleMaterializations,
)
from dbt.tests.adapter.basic.test_empty import BaseEmpty as TestEmptyProject
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral as TestEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests as TestGenericTests
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests as TestSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import (
    BaseSingularTestsEphemeral as TestSingularTestsEphemeral,
)
from dbt.tests.adapter.basic.test_table_materialization import (
    BaseTableMaterialization as TestTableMaterialization,
)
from dbt.tests.adapter.basic.test_validate_connection import (
    BaseValidateConnection as TestValidateConnection,
)
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency as TestConcurrency
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowLimit as TestShowLimit,
)
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowSqlHeader as TestShowSqlHeader,
)
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty as TestEmpty,
)
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmptyInlineSourceRef as TestEmptyInlineSourceRef,
)
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmptySeedFlag as TestEmptySeedFlag,
)
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling as TestEphemeralErrorHandling,
)
from dbt.tests.adapter.ephemeral.test_ephemeral import BaseEphemeralMulti as TestEphemeralMulti
from dbt.tests.adapter.relations.test_changing_relation_type import (
    BaseChangeRelationTypeValidator as TestChangeRelationType,
)
from dbt.tests.adapter.relations.test_dropping_schema_named import (
    BaseDropSchemaNamed as TestDropSchemaNamed,
)
