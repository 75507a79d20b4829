"""Contracts: acidsql enforces NOT NULL and CHECK, in the transaction that replaces the table."""

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)


def sparks(schema: str) -> str:
    """A schema file of the suite with Spark's type for texts. A primary key is no expression of
    another constraint."""
    return schema.replace("text", "string").replace("primary key", "")


class SparksTypes:
    @pytest.fixture
    def string_type(self):
        return "string"

    @pytest.fixture
    def int_type(self):
        return "int"

    @pytest.fixture
    def data_types(self, schema_int_type, int_type, string_type):
        # a value, its type in a contract, its type in an error
        return [
            ["1", schema_int_type, int_type],
            ["'1'", string_type, string_type],
            ["true", "boolean", "boolean"],
            ["array('1', '2')", "array<string>", "array<string>"],
            ["array(1, 2)", "array<int>", "array<int>"],
            ["map('a', 1)", "map<string,int>", "map<string,int>"],
            ["cast(6.45 as decimal(10, 2))", "decimal(10,2)", "decimal(10,2)"],
            ["date '2019-01-01'", "date", "date"],
            ["timestamp '2019-01-01 00:00:00'", "timestamp", "timestamp"],
            ["timestamp_ntz '2019-01-01 00:00:00'", "timestamp_ntz", "timestamp"],
        ]


class TestTableConstraintsColumnsEqual(SparksTypes, BaseTableConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_wrong_order.sql": fixtures.my_model_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_wrong_name_sql,
            "constraints_schema.yml": sparks(fixtures.model_schema_yml),
        }


class TestViewConstraintsColumnsEqual(SparksTypes, BaseViewConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_wrong_order.sql": fixtures.my_model_view_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_view_wrong_name_sql,
            "constraints_schema.yml": sparks(fixtures.model_schema_yml),
        }


class TestIncrementalConstraintsColumnsEqual(SparksTypes, BaseIncrementalConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_wrong_order.sql": fixtures.my_model_incremental_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_incremental_wrong_name_sql,
            "constraints_schema.yml": sparks(fixtures.model_schema_yml),
        }


COLUMNS = """
create or replace table <model_identifier> (
   `id` integer not null primary key check ((id > 0)) check (id >= 1)
     references <foreign_key_model_identifier> (id) unique,
   `color` string,
   `date_day` string)
as
select id, color, date_day from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day ) as model_subq
"""


class TestTableConstraintsDdl(BaseConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": sparks(fixtures.model_fk_constraint_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return COLUMNS


class TestIncrementalConstraintsDdl(BaseIncrementalConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_incremental_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": sparks(fixtures.model_fk_constraint_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return COLUMNS


class TestModelConstraintsDdl(BaseModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": fixtures.constrained_model_schema_yml.replace(
                "text", "string"
            ),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
create or replace table <model_identifier> (
   `id` integer not null,
   `color` string,
   `date_day` string,
   check ((id > 0)),
   check (id >= 1),
   primary key (id),
   constraint strange_uniqueness_requirement unique (color, date_day),
   foreign key (id) references <foreign_key_model_identifier> (id))
as
select id, color, date_day from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day ) as model_subq
"""


class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self):
        schema = fixtures.model_quoted_column_schema_yml
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql.replace('"', "`"),
            "constraints_schema.yml": schema.replace("text", "string").replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
create or replace table <model_identifier> (
   `id` integer not null,
   `from` string not null,
   `date_day` string,
   check ((`from` = 'blue')))
as
select id, `from`, date_day from (
    select 'blue' as `from`, 1 as id, '2019-01-01' as date_day ) as model_subq
"""


class OldRowsStay:
    """The suite lets an adapter say which rows stay after a failure: here the old ones."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self):
        return ["NOT_NULL_CONSTRAINT_VIOLATION"]

    @pytest.fixture(scope="class")
    def expected_color(self):
        return "blue"


class TestTableConstraintsRollback(OldRowsStay, BaseConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_sql,
            "constraints_schema.yml": sparks(fixtures.model_schema_yml),
        }


class TestIncrementalConstraintsRollback(OldRowsStay, BaseIncrementalConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_incremental_model_sql,
            "constraints_schema.yml": sparks(fixtures.model_schema_yml),
        }


class SparksHeader:
    """The suite's header sets PostgreSQL's time zone, and its query asks for it."""

    QUERY = "select cast(current_timezone() as string) as column_name"

    @pytest.fixture(scope="class")
    def models(self):
        materialized = self.materialized
        return {
            "my_model_contract_sql_header.sql": f"""
{{{{ config(materialized="{materialized}", on_schema_change="append_new_columns") }}}}
{{% call set_sql_header(config) %}}
set time zone 'Asia/Kolkata';
{{%- endcall %}}
{self.QUERY}
""",
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml.replace(
                "text", "string"
            ),
        }


class TestTableContractSqlHeader(SparksHeader, BaseTableContractSqlHeader):
    materialized = "table"


class TestIncrementalContractSqlHeader(SparksHeader, BaseIncrementalContractSqlHeader):
    materialized = "incremental"


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    pass
