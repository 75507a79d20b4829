"""dbt's macros for SQL of all databases, and the types of columns."""

import pytest
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt as TestTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import (
    BaseTypeBoolean as TestTypeBoolean,
)
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_float import seeds__expected_csv as floats_csv
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_int import seeds__expected_csv as integers_csv
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString as TestTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import (
    BaseTypeTimestamp as TestTypeTimestamp,
)
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue as TestAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend as TestArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat as TestArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct as TestArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr as TestBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast as TestCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import (
    BaseCastBoolToText as TestCastBoolToText,
)
from dbt.tests.adapter.utils.test_concat import BaseConcat as TestConcat
from dbt.tests.adapter.utils.test_current_timestamp import (
    BaseCurrentTimestampNaive as TestCurrentTimestampNaive,
)
from dbt.tests.adapter.utils.test_date import BaseDate as TestDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine as TestDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc as TestDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd as TestDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff as TestDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals as TestEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import (
    BaseEscapeSingleQuotesBackslash as TestEscapeSingleQuotesBackslash,
)
from dbt.tests.adapter.utils.test_except import BaseExcept as TestExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries as TestGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import (
    BaseGetIntervalsBetween as TestGetIntervalsBetween,
)
from dbt.tests.adapter.utils.test_get_powers_of_two import (
    BaseGetPowersOfTwo as TestGetPowersOfTwo,
)
from dbt.tests.adapter.utils.test_hash import BaseHash as TestHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect as TestIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength as TestLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg as TestListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare as TestMixedNullCompare
from dbt.tests.adapter.utils.test_null_compare import BaseNullCompare as TestNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition as TestPosition
from dbt.tests.adapter.utils.test_replace import BaseReplace as TestReplace
from dbt.tests.adapter.utils.test_right import BaseRight as TestRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast as TestSafeCast
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart as TestSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral as TestStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod as TestValidateSql


def typed_seed(csv: str, column: str, dtype: str) -> dict[str, str]:
    """A seed with a column of a type: dbt would take it for a wider one."""
    properties = (
        "version: 2\nseeds:\n  - name: expected\n    config:\n      column_types:\n"
        f"        {column}: {dtype}\n"
    )
    return {"expected.csv": csv, "expected.yml": properties}


class TestTypeFloat(BaseTypeFloat):
    @pytest.fixture(scope="class")
    def seeds(self):
        return typed_seed(floats_csv, "float_col", "float")


class TestTypeInt(BaseTypeInt):
    @pytest.fixture(scope="class")
    def seeds(self):
        return typed_seed(integers_csv, "int_col", "int")


class TestTypeNumeric(BaseTypeNumeric):
    def numeric_fixture_type(self):
        return "decimal(28,6)"


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "get_current_timestamp.sql": "select {{ current_timestamp() }} as current_timestamp"
        }

    @pytest.fixture(scope="class")
    def expected_schema(self):
        return {"current_timestamp": "timestamp"}

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return "select current_timestamp() as current_timestamp"


class TestLastDay(BaseLastDay):
    pass
