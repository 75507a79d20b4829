"""Descriptions as comments, ``dbt docs generate``, stored failures, unit tests, ``dbt debug``."""

import pytest
from dbt.tests.adapter.basic.expected_catalog import (
    base_expected_catalog,
    expected_references_catalog,
    no_stats,
)
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebug
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs as TestPersistDocs,
)
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsAllColumnsMissing as TestPersistDocsAllColumnsMissing,
)
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsColumnMissing as TestPersistDocsColumnMissing,
)
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsCommentOnQuotedColumn as TestPersistDocsCommentOnQuotedColumn,
)
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsQuotedColumnCaseSensitive as TestPersistDocsQuotedColumnCaseSensitive,
)
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch as TestPersistDocsQuotedDescriptionNotAppliedOnMismatch,  # noqa: E501
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments as TestEmptyQueryComments,
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseMacroArgsQueryComments as TestMacroArgsQueryComments,
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseMacroInvalidQueryComments as TestMacroInvalidQueryComments,
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseMacroQueryComments as TestMacroQueryComments,
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseNullQueryComments as TestNullQueryComments,
)
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseQueryComments as TestQueryComments,
)
from dbt.tests.adapter.store_test_failures_tests import basic
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
)
from dbt.tests.adapter.unit_testing.test_case_insensitivity import (
    BaseUnitTestCaseInsensivity as TestUnitTestCaseInsensivity,
)
from dbt.tests.adapter.unit_testing.test_invalid_input import (
    BaseUnitTestInvalidInput as TestUnitTestInvalidInput,
)
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes
from dbt.tests.util import run_dbt


class TestStoreTestFailuresAsInteractions(basic.StoreTestFailuresAsInteractions):
    pass


class TestStoreTestFailuresAsProjectLevelOff(basic.StoreTestFailuresAsProjectLevelOff):
    pass


class TestStoreTestFailuresAsProjectLevelView(basic.StoreTestFailuresAsProjectLevelView):
    pass


class TestStoreTestFailuresAsProjectLevelEphemeral(basic.StoreTestFailuresAsProjectLevelEphemeral):
    pass


class TestStoreTestFailuresAsGeneric(basic.StoreTestFailuresAsGeneric):
    pass


class TestStoreTestFailuresAsExceptions(basic.StoreTestFailuresAsExceptions):
    pass


class TestStoreTestFailures(BaseStoreTestFailures):
    pass


class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self):
        # a value in SQL, a value in a unit test
        return [
            ["1", "1"],
            ["2.0", "2.0"],
            ["'12345'", "12345"],
            ["'string'", "string"],
            ["true", "true"],
            ["date '2011-11-11'", "2011-11-11"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["array(1, 2, 3)", "'array(1, 2, 3)'"],
            ["named_struct('a', 1, 'b', 2)", """'named_struct("a", 1, "b", 2)'"""],
        ]


class TestDebug(BaseDebug):
    def test_the_connection_is_tried(self, project):
        run_dbt(["debug"])
        assert "OK connection ok" in self.capsys.readouterr().out


class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project, profile_user):
        return base_expected_catalog(
            project, role=None, id_type="bigint", text_type="string", time_type="timestamp",
            view_type="view", table_type="table", model_stats=no_stats(), case=None,
        )  # fmt: skip


class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project, profile_user):
        return expected_references_catalog(
            project, role=None, id_type="bigint", text_type="string", time_type="timestamp",
            bigint_type="bigint", view_type="view", table_type="table", model_stats=no_stats(),
        )  # fmt: skip
