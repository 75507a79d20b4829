"""Aliases. The suite's macro for literals is PostgreSQL's; an adapter may give another."""

import pytest
from dbt.tests.adapter.aliases import fixtures
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentSchemas,
)

LITERAL = "{% macro acidsql__string_literal(s) -%}\n  '{{ s }}'\n{%- endmacro %}\n"


class SparksLiterals:
    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "cast.sql": fixtures.MACROS__CAST_SQL + LITERAL,
            "expect_value.sql": fixtures.MACROS__EXPECT_VALUE_SQL,
        }


class TestAliases(SparksLiterals, BaseAliases):
    pass


class TestAliasErrors(SparksLiterals, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(SparksLiterals, BaseSameAliasDifferentSchemas):
    pass
