{% materialization incremental, adapter='acidsql', supported_languages=['sql', 'python'] %}
  {%- set language = model['language'] -%}
  {%- do acidsql_refuse_grants(config.get('grants')) -%}
  {%- set unique_key = config.get('unique_key') -%}
  {%- set strategy = config.get('incremental_strategy') or 'default' -%}
  {%- set strategy_sql = adapter.get_incremental_strategy_macro(context, strategy) -%}
  {%- set predicates = config.get('predicates') or config.get('incremental_predicates') or [] -%}
  {%- set predicates = [predicates] if predicates is string else predicates -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}

  {%- if existing_relation is none or existing_relation.is_view or should_full_refresh() -%}

    {{ acidsql_run_hooks_before(pre_hooks) }}
    {%- do acidsql_drop_unless(existing_relation, 'table') -%}
    {%- call statement('main', language=language) -%}
      {{ create_table_as(False, target_relation, compiled_code, language) }}
    {%- endcall -%}
    {%- do persist_docs(target_relation, model) -%}
    {{ acidsql_run_hooks_after(post_hooks) }}

  {%- else -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {%- set new_rows = make_temp_relation(target_relation) -%}
    {%- call statement('create_new_rows', language=language) -%}
      {{ create_table_as(True, new_rows, compiled_code, language) }}
    {%- endcall -%}
    {%- set columns = process_schema_changes(on_schema_change, new_rows, existing_relation) -%}
    {%- if not columns -%}
      {%- set columns = adapter.get_columns_in_relation(existing_relation) -%}
    {%- endif -%}
    {%- if strategy == 'delete+insert' and predicates -%}
      {%- set new_rows = acidsql_settled(new_rows) -%}
    {%- endif -%}

    {%- set changes_sql = strategy_sql({'target_relation': target_relation, 'temp_relation': new_rows, 'unique_key': unique_key,
                                        'dest_columns': columns, 'incremental_predicates': predicates}) -%}
    {%- do acidsql_change_rows_with_hooks(target_relation, (config.get('sql_header') or '') ~ '\n' ~ changes_sql, pre_hooks, post_hooks) -%}

  {%- endif -%}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#- Replace a temporary view by a temporary table of its rows. The view would be evaluated by each
    statement, and may read the table that the first statement changes. -#}
{% macro acidsql_settled(view) %}
  {%- set table = make_temp_relation(view, '_rows') -%}
  {%- call statement('settle_new_rows') -%}
    create temporary table {{ table.render() }} as select * from {{ view.render() }}
  {%- endcall -%}
  {{ return(table) }}
{%- endmacro %}
