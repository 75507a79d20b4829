{#- Tables and views: CREATE, DROP, RENAME, comments and columns. -#}

{#- The clauses of CREATE TABLE behind its columns, from the model's config. -#}
{% macro acidsql_table_clauses() %}
  {%- set file_format = config.get('file_format') -%}
  {%- if config.get('location_root') is not none -%}
    {% do exceptions.raise_compiler_error("location_root is not supported: a table that dbt replaces gets a directory of its own in the warehouse.") %}
  {%- endif -%}
  {%- if config.get('options') is not none -%}
    {% do exceptions.raise_compiler_error("options are not supported: say tblproperties, as 'orc.compress'.") %}
  {%- endif -%}
  {%- if file_format not in [none, 'acidsql', 'orc'] -%}
    {% do exceptions.raise_compiler_error("file_format '" ~ file_format ~ "' is not supported: models are ACID tables of ORC files. Leave file_format out.") %}
  {%- endif -%}
  {{ acidsql_list_clause('partitioned by', config.get('partition_by')) }}
  {%- if config.get('clustered_by') is not none and config.get('buckets') is not none %}
  {{ acidsql_list_clause('clustered by', config.get('clustered_by')) }} into {{ config.get('buckets') }} buckets
  {%- endif %}
  {{ comment_clause() }}
  {{ tblproperties_clause() }}
{%- endmacro %}

{% macro acidsql_list_clause(words, columns) %}
  {%- if columns is not none -%}
    {%- set columns = [columns] if columns is string else columns -%}
    {{ words }} ({{ acidsql_quoted_csv(columns) }})
  {%- endif -%}
{%- endmacro %}

{#- Names in back-quotes, with commas between them. A name that has back-quotes keeps them. -#}
{% macro acidsql_quoted_csv(names) %}
  {%- for name in names -%}
    {{ acidsql_quoted(name) }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}

{% macro acidsql_quoted(name) -%}
  {{ name if name.startswith('`') else adapter.quote(name) }}
{%- endmacro %}

{% macro acidsql__comment_clause() %}
  {%- if config.persist_relation_docs() and model.description -%}
    comment {{ adapter.quote_string(model.description) }}
  {%- endif -%}
{%- endmacro %}

{% macro acidsql__tblproperties_clause() -%}
  {%- set properties = config.get('tblproperties') -%}
  {%- if properties -%}
    tblproperties (
    {%- for key in properties -%}
      {{ adapter.quote_string(key) }} = {{ adapter.quote_string(properties[key] | string) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
    )
  {%- endif -%}
{%- endmacro %}

{#- The columns of a contract, with their constraints and comments: CREATE TABLE checks the rows
    against them, and creates the table only if all rows hold. -#}
{% macro acidsql_contract_columns() %}
  {%- set comments = config.persist_column_docs() -%}
  {%- set definitions = [] -%}
  {%- for column in model['columns'].values() -%}
    {%- do definitions.append(adapter.column_definition(column, comments)) -%}
  {%- endfor -%}
  ({{ (definitions + adapter.render_raw_model_constraints(raw_constraints=model['constraints'])) | join(',\n   ') }})
{%- endmacro %}

{% macro acidsql__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language == 'python' -%}
    {{ acidsql_python_model(temporary, relation, compiled_code) }}
  {%- elif temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    {{ config.get('sql_header') or '' }}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(compiled_code) }}
      create or replace table {{ relation.render() }}
      {{ acidsql_contract_columns() }}
      {{ acidsql_table_clauses() }}
      as
      {{ get_select_subquery(compiled_code) }}
    {%- else %}
      create or replace table {{ relation.render() }}
      {{ acidsql_table_clauses() }}
      as
      {{ compiled_code }}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{% macro acidsql__create_temporary_view(relation, compiled_code) -%}
  create or replace temporary view {{ relation.include(database=false, schema=false).render() }} as
  {{ compiled_code }}
{%- endmacro %}

{#- 'transactional'='true': acidsql's metastore has the view, even if its query reads no table, so
    that other processes see it. -#}
{% macro acidsql__create_view_as(relation, sql) -%}
  {{ config.get('sql_header') or '' }}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  create or replace view {{ relation.render() }}
  {%- if config.persist_column_docs() and model.columns %}
  ({{ acidsql_view_columns(sql) }})
  {%- endif %}
  {{ comment_clause() }}
  tblproperties ('transactional' = 'true')
  as
  {{ sql }}
{%- endmacro %}

{% macro acidsql_view_columns(sql) %}
  {%- set descriptions = {} -%}
  {%- for column in model.columns.values() -%}
    {%- do descriptions.update({column['name'].strip('`') | lower: column['description']}) -%}
  {%- endfor -%}
  {%- for name in get_columns_in_query(sql) -%}
    {%- set description = descriptions.get(name | lower) -%}
    {{ adapter.quote(name) }}
    {%- if description %} comment {{ adapter.quote_string(description) }}{% endif -%}
    {{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}

{% macro acidsql__create_schema(relation) -%}
  {%- call statement('create_schema') -%}
    create schema if not exists {{ adapter.quote(relation.schema) }}
  {%- endcall -%}
{%- endmacro %}

{% macro acidsql__drop_schema(relation) -%}
  {%- call statement('drop_schema') -%}
    drop schema if exists {{ adapter.quote(relation.schema) }} cascade
  {%- endcall -%}
{%- endmacro %}

{#- dbt-spark's returns the rows of DESCRIBE; dbt's own macros need columns. -#}
{% macro acidsql__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}

{#- A temporary view or table has no schema in its name. -#}
{% macro acidsql__make_temp_relation(base_relation, suffix) %}
  {%- set name = base_relation.identifier ~ suffix -%}
  {%- do return(base_relation.incorporate(path={'identifier': name}, type='view').include(database=false, schema=false)) -%}
{%- endmacro %}

{% macro acidsql__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- if for_columns and config.persist_column_docs() and model.columns and not relation.is_view -%}
    {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- do alter_column_comment(relation, validate_doc_columns(relation, model.columns, existing)) -%}
  {%- endif -%}
{%- endmacro %}

{% macro acidsql__alter_column_comment(relation, column_dict) %}
  {%- for column in column_dict.values() if column['description'] -%}
    {%- do run_query('alter table ' ~ relation.render() ~ ' alter column ' ~ acidsql_quoted(column['name']) ~ ' comment ' ~ adapter.quote_string(column['description'])) -%}
  {%- endfor -%}
{%- endmacro %}

{#- ORC's columns go by position, so acidsql drops none: the table is replaced by its other columns,
    in one transaction. -#}
{% macro acidsql__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if remove_columns -%}
    {%- set removed = remove_columns | map(attribute='name') | map('lower') | list -%}
    {%- set remaining = [] -%}
    {%- for column in adapter.get_columns_in_relation(relation) if column.name | lower not in removed -%}
      {%- do remaining.append(column.quoted) -%}
    {%- endfor -%}
    {%- call statement('remove_columns') -%}
      create or replace table {{ relation.render() }}
      {{ acidsql_table_clauses() }}
      as
      select {{ remaining | join(', ') }} from {{ relation.render() }}
    {%- endcall -%}
  {%- endif -%}
  {%- if add_columns -%}
    {%- call statement('add_columns') -%}
      alter table {{ relation.render() }} add columns (
      {%- for column in add_columns -%}
        {{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}
      {%- endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
{%- endmacro %}

{% macro acidsql__create_columns(relation, columns) %}
  {%- do alter_relation_add_remove_columns(relation, columns, none) if columns -%}
{%- endmacro %}

{% macro acidsql__alter_column_type(relation, column_name, new_column_type) -%}
  {%- call statement('alter_column_type') -%}
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro %}

{#- acidsql has no users. -#}
{% macro acidsql__apply_grants(relation, grant_config, should_revoke=True) %}
  {%- do acidsql_refuse_grants(grant_config) -%}
{%- endmacro %}

{% macro acidsql_refuse_grants(grant_config) %}
  {%- if grant_config -%}
    {% do exceptions.raise_compiler_error("grants are not supported: acidsql has no users, and the rights on a table are those on its directory and on the metastore. Remove the config grants.") %}
  {%- endif -%}
{%- endmacro %}

{% macro acidsql__can_clone_table() %}
  {{ return(false) }}
{%- endmacro %}
