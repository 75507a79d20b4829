{% materialization snapshot, adapter='acidsql' %}
  {%- do acidsql_refuse_grants(config.get('grants')) -%}
  {%- set target_relation_exists, target_relation = get_or_create_relation(
        database=none, schema=model.schema, identifier=model.get('alias', model.get('name')), type='table') -%}
  {%- if not target_relation.is_table -%}
    {%- do exceptions.relation_wrong_type(target_relation, 'table') -%}
  {%- endif -%}
  {%- set strategy = strategy_dispatch(config.get('strategy'))(model, 'snapshotted_data', 'source_data', model['config'], target_relation_exists) -%}

  {%- if not target_relation_exists -%}

    {{ acidsql_run_hooks_before(pre_hooks) }}
    {%- set rows_sql = build_snapshot_table(strategy, model['compiled_code']) -%}
    {{ check_time_data_types(rows_sql) }}
    {%- call statement('main') -%}
      {{ create_table_as(False, target_relation, rows_sql) }}
    {%- endcall -%}
    {%- do persist_docs(target_relation, model) -%}
    {{ acidsql_run_hooks_after(post_hooks) }}

  {%- else -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {%- set column_names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
    {{ adapter.assert_valid_snapshot_target_given_strategy(target_relation, column_names, strategy) }}
    {{ check_time_data_types(snapshot_staging_table(strategy, sql, target_relation)) }}
    {%- set changed_rows = build_snapshot_staging_table(strategy, sql, target_relation) -%}
    {%- set auxiliary = acidsql_snapshot_auxiliary_columns(strategy) -%}
    {%- do create_columns(target_relation, adapter.get_missing_columns(changed_rows, target_relation)
                                           | rejectattr('name', 'in', auxiliary) | list) -%}
    {%- set inserted = [] -%}
    {%- for column in adapter.get_columns_in_relation(changed_rows) if column.name | lower not in auxiliary -%}
      {%- do inserted.append(column.quoted) -%}
    {%- endfor -%}

    {%- set merge_sql = snapshot_merge_sql(target=target_relation, source=changed_rows, insert_cols=inserted) -%}
    {%- do acidsql_change_rows_with_hooks(target_relation, merge_sql, pre_hooks, post_hooks) -%}

  {%- endif -%}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#- The columns of the changed rows that the snapshot's table does not have. -#}
{% macro acidsql_snapshot_auxiliary_columns(strategy) %}
  {%- set names = ['dbt_change_type', 'dbt_unique_key'] -%}
  {%- if strategy.unique_key | is_list -%}
    {%- for key in strategy.unique_key -%}
      {%- do names.append('dbt_unique_key_' ~ loop.index) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(names) }}
{%- endmacro %}


{% macro acidsql__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ return(default__snapshot_merge_sql(target, source, insert_cols)) }}
{%- endmacro %}

{% macro acidsql__post_snapshot(staging_relation) %}
{% endmacro %}
