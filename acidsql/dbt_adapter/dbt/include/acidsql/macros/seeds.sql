{#- A seed is one CREATE OR REPLACE TABLE … AS: readers see the old rows or the new ones. -#}

{% macro acidsql__create_csv_table(model, agate_table) %}
  {#- load_csv_rows makes the table together with its rows, unless there are none. -#}
  {%- if agate_table.rows | length == 0 -%}
    {%- do acidsql_load_seed(agate_table) -%}
  {%- endif -%}
  {{ return('') }}
{%- endmacro %}

{% macro acidsql__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {{ return(create_csv_table(model, agate_table)) }}
{%- endmacro %}

{% macro acidsql__load_csv_rows(model, agate_table) %}
  {{ return(acidsql_load_seed(agate_table)) }}
{%- endmacro %}

{% macro acidsql_load_seed(agate_table) %}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {%- set types = {} -%}
  {%- for name in agate_table.column_names -%}
    {%- do types.update({name | string: overrides.get(name, adapter.convert_type(agate_table, loop.index0))}) -%}
  {%- endfor -%}
  {%- set create -%}
    create or replace table {{ this.render() }}
    {{ acidsql_table_clauses() }}
  {%- endset -%}
  {%- do adapter.create_table_of_rows(create, agate_table, types) -%}
  {{ return(create) }}
{%- endmacro %}
