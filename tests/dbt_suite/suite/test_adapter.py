"""What acidsql promises dbt's users beyond dbt's own suite: one transaction, old rows after faults,
odd names, refusals by name, and types of timestamps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from dbt.tests.util import run_dbt, write_file

KEPT = "{{ config(materialized='incremental', incremental_strategy='%s', unique_key='id'%s) }}\n"
ROWS = "select 1 as id, 'old' as v union all select 2, 'old'"


def rows(project, table, columns="*"):
    return sorted(project.run_sql(f"select {columns} from {{schema}}.{table}", fetch="all"))


def failure(*words):
    """The message of the one model that fails."""
    results = run_dbt(["run", *words], expect_pass=False)
    (message,) = [result.message for result in results if result.status == "error"]
    return message


class TestHooksAreInTheTransaction:
    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "last_word.sql": "{% macro last_word() %}{{ return(var('last', \"'last'\")) }}"
            "{% endmacro %}"
        }

    @pytest.fixture(scope="class")
    def models(self):
        hooks = (
            ", pre_hook=\"insert into {{ this.schema }}.audit values ('before')\""
            ", post_hook=[\"insert into {{ this.schema }}.audit values ('after')\","
            ' "insert into {{ this.schema }}.audit select {{ last_word() }}"]'
        )
        return {
            "m.sql": KEPT % ("merge", hooks)
            + "{% if is_incremental() %} select 2 as id, 'new' as v"
            + f"{{% else %}} {ROWS} {{% endif %}}",
            "compacted.sql": KEPT
            % ("append", ', post_hook="analyze table {{ this }} compute statistics"')
            + ROWS,
            "compacted_after.sql": KEPT
            % (
                "append",
                ", post_hook={'sql': 'analyze table {{ this }} compute statistics',"
                " 'transaction': false}",
            )
            + ROWS,
        }

    def test_a_hook_that_fails_undoes_the_model_and_the_other_hooks(self, project):
        project.run_sql("create table {schema}.audit (word string)")
        run_dbt(["run", "--select", "m"])
        assert rows(project, "audit") == [("after",), ("before",), ("last",)]
        fails = "raise_error('the hook fails')"
        assert "the hook fails" in failure("--select", "m", "--vars", f'{{last: "{fails}"}}')
        assert rows(project, "m") == [(1, "old"), (2, "old")]
        assert rows(project, "audit") == [("after",), ("before",), ("last",)]
        run_dbt(["run", "--select", "m"])
        assert rows(project, "m") == [(1, "old"), (2, "new")]
        assert len(rows(project, "audit")) == 6

    def test_what_cannot_be_in_a_transaction_may_come_after_it(self, project):
        run_dbt(["run", "--select", "compacted", "compacted_after"])
        message = failure("--select", "compacted", "compacted_after")
        assert "OP_NOT_ALLOWED_IN_TXN" in message and "after_commit" in message
        assert len(rows(project, "compacted")) == 2 and len(rows(project, "compacted_after")) == 4


class TestOldRowsStay:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "t.sql": "{{ config(materialized='table') }}\n" + ROWS,
            "m.sql": KEPT % ("delete+insert", ", incremental_predicates=['id < 9']")
            + "{% if is_incremental() %} select id, {{ var('v', \"'new'\") }} as v from {{ this }}"
            + f" where id = 2 {{% else %}} {ROWS} {{% endif %}}",
        }

    def test_a_model_that_fails_leaves_its_table(self, project):
        run_dbt(["run"])
        before = rows(project, "t")
        write_file(
            "{{ config(materialized='table') }}\nselect raise_error('no') as id, 'new' as v",
            project.project_root, "models", "t.sql",
        )  # fmt: skip
        assert "no" in failure("--select", "t")
        assert rows(project, "t") == before

    def test_the_new_rows_are_those_of_before_the_delete(self, project):
        """The model reads its own table: after its DELETE it would find nothing to insert."""
        run_dbt(["run", "--select", "m"])
        assert rows(project, "m") == [(1, "old"), (2, "new")]

    def test_a_run_that_is_killed_leaves_the_old_rows_and_the_next_one_works(self, project):
        before = rows(project, "m")
        slow = "reflect('java.lang.Thread', 'sleep', 90000L)"
        command = [sys.executable, "-m", "dbt.cli.main", "run", "--select", "m", "--vars"]
        places = ["--profiles-dir", str(project.profiles_dir)]
        for seconds in (0.5, 4):
            dbt = subprocess.Popen(
                [*command, f'{{v: "coalesce({slow}, id)"}}', *places],
                cwd=project.project_root, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            while "START sql incremental" not in (line := dbt.stdout.readline()):
                assert line, "dbt has ended before its model has begun"
            time.sleep(seconds)
            os.kill(dbt.pid, signal.SIGKILL)
            dbt.wait()
            assert rows(project, "m") == before
        run_dbt(["run", "--select", "m"])
        assert rows(project, "m") == [(1, "old"), (2, "new")]


class TestOddNames:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "select.sql": KEPT.replace("'id'", "'`group`'") % ("merge", ", partition_by='order'")
            + "select 1 as `group`, 'x' as `order`, 'ü' as `naïve ``tick`, timestamp'2020-01-01' t",
            "Upper_Case.sql": "select `group` as G from {{ ref('select') }}",
            "schema.yml": """
models:
  - name: select
    description: "it's a \\"table\\" \\\\ of `odd` names -- {braces} ; /* ü */"
    config: {persist_docs: {relation: true, columns: true}, on_schema_change: fail}
    columns:
      - {name: group, quote: true, description: "it's ; a 'key'"}
""",
        }

    def test_reserved_words_unicode_and_quotes_are_names_and_comments(self, project):
        run_dbt(["run"])
        run_dbt(["run"])  # nothing looks changed: not the types, nor the case of letters
        assert rows(project, "`select`", "`group`, `order`, `naïve ``tick`") == [(1, "x", "ü")]
        assert rows(project, "upper_case") == [(1,)]
        described = {
            row[0]: row[1:]
            for row in project.run_sql("describe extended {schema}.`select`", fetch="all")
        }
        assert described["group"][1] == "it's ; a 'key'"
        comment = 'it\'s a "table" \\ of `odd` names -- {braces} ; /* ü */'
        assert described["Comment"][0] == comment
        catalog = run_dbt(["docs", "generate"])
        (node,) = [node for key, node in catalog.nodes.items() if key.endswith(".select")]
        assert node.metadata.comment == comment
        assert [column.type for column in node.columns.values()] == [
            "int", "string", "timestamp", "string",
        ]  # fmt: skip


class TestRefusals:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "granted.sql": "{{ config(materialized='table', grants={'select': ['ann']}) }}" + ROWS,
            "elsewhere.sql": "{{ config(materialized='table', location_root='/x') }}" + ROWS,
            "parquet.sql": "{{ config(materialized='table', file_format='parquet') }}" + ROWS,
        }

    def test_what_cannot_be_is_refused_by_name_and_nothing_is_made(self, project):
        results = run_dbt(["run"], expect_pass=False)
        messages = {result.node.name: result.message for result in results}
        assert "grants are not supported" in messages["granted"]
        assert "location_root is not supported" in messages["elsewhere"]
        assert "file_format 'parquet' is not supported" in messages["parquet"]
        assert project.run_sql("show tables in {schema}", fetch="all") == []
