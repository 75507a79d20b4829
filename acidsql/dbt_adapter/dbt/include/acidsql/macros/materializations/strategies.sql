{#- The statements of the incremental strategies, under the names by which dbt looks for them; a
    project may add its own. All are one statement, but delete+insert with predicates. -#}

{% macro acidsql__get_incremental_append_sql(arg_dict) %}
  {{ return(acidsql_insert('into', arg_dict, '')) }}
{%- endmacro %}

{#- Without a strategy, a key is not passed over: its rows are merged. -#}
{% macro acidsql__get_incremental_default_sql(arg_dict) %}
  {{ return(get_incremental_merge_sql(arg_dict)) }}
{%- endmacro %}

{% macro acidsql__get_incremental_insert_overwrite_sql(arg_dict) %}
  {{ return(acidsql_insert('overwrite', arg_dict, '')) }}
{%- endmacro %}

{% macro acidsql__get_incremental_merge_sql(arg_dict) %}
  {%- if not arg_dict['unique_key'] -%}
    {{ return(acidsql_insert('into', arg_dict, '')) }}
  {%- endif -%}
  {{ return(get_merge_sql(arg_dict['target_relation'], arg_dict['temp_relation'], arg_dict['unique_key'],
                          arg_dict['dest_columns'], arg_dict['incremental_predicates'])) }}
{%- endmacro %}

{% macro acidsql__get_incremental_delete_insert_sql(arg_dict) %}
  {%- set keys = acidsql_keys(arg_dict['unique_key']) -%}
  {%- if not keys -%}
    {{ return(acidsql_insert('into', arg_dict, '')) }}
  {%- endif -%}
  {%- if arg_dict['incremental_predicates'] -%}
    {{ return(get_delete_insert_merge_sql(arg_dict['target_relation'], arg_dict['temp_relation'], keys,
                                          arg_dict['dest_columns'], arg_dict['incremental_predicates'])) }}
  {%- endif -%}
  {{ return(acidsql_insert('into', arg_dict, 'replace using (' ~ acidsql_quoted_csv(keys) ~ ')')) }}
{%- endmacro %}

{% macro acidsql__get_incremental_microbatch_sql(arg_dict) %}
  {{ return(acidsql_insert('into', arg_dict, 'replace where ' ~ acidsql_batch_condition())) }}
{%- endmacro %}

{% macro acidsql_insert(word, arg_dict, replacing) %}
  {%- set columns_csv = acidsql_quoted_csv(arg_dict['dest_columns'] | map(attribute='name') | list) -%}
  insert {{ word }} {{ arg_dict['target_relation'].render() }} by name {{ replacing }}
  select {{ columns_csv }} from {{ arg_dict['temp_relation'].render() }}
{%- endmacro %}


{#- The rows of a batch, compared as dbt compares the rows that the batch reads. -#}
{% macro acidsql_batch_condition() %}
  {%- set event_time = acidsql_quoted(config.get('event_time')) -%}
  {%- set terms = [] -%}
  {%- if model.batch and model.batch.event_time_start -%}
    {%- do terms.append(event_time ~ " >= '" ~ model.batch.event_time_start ~ "'") -%}
  {%- endif -%}
  {%- if model.batch and model.batch.event_time_end -%}
    {%- do terms.append(event_time ~ " < '" ~ model.batch.event_time_end ~ "'") -%}
  {%- endif -%}
  {%- if not terms -%}
    {% do exceptions.raise_compiler_error("The incremental strategy microbatch needs a batch: dbt has given none.") %}
  {%- endif -%}
  {{ return(terms | join(' and ')) }}
{%- endmacro %}


{% macro acidsql_keys(unique_key) %}
  {%- if not unique_key -%}
    {{ return([]) }}
  {%- endif -%}
  {{ return([unique_key] if unique_key is string else unique_key) }}
{%- endmacro %}


{% macro acidsql__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates=none) -%}
  {%- set names = dest_columns | map(attribute='name') | list -%}
  {%- set update_columns = get_merge_update_columns(config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns) -%}
  {%- set terms = [] + (incremental_predicates or []) -%}
  {%- for key in acidsql_keys(unique_key) -%}
    {%- do terms.append('DBT_INTERNAL_SOURCE.' ~ acidsql_quoted(key) ~ ' = DBT_INTERNAL_DEST.' ~ acidsql_quoted(key)) -%}
  {%- endfor -%}
  merge into {{ target.render() }} as DBT_INTERNAL_DEST
  using {{ source.render() }} as DBT_INTERNAL_SOURCE
  on ({{ terms | join(') and (') }})
  when matched then update set
  {%- for name in update_columns or names %}
    {{ acidsql_quoted(name) }} = DBT_INTERNAL_SOURCE.{{ acidsql_quoted(name) }}{{ ',' if not loop.last }}
  {%- endfor %}
  when not matched then insert ({{ acidsql_quoted_csv(names) }})
  values (
  {%- for name in names -%}
    DBT_INTERNAL_SOURCE.{{ acidsql_quoted(name) }}{{ ', ' if not loop.last }}
  {%- endfor -%}
  )
{%- endmacro %}


{% macro acidsql__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {%- set columns_csv = acidsql_quoted_csv(dest_columns | map(attribute='name') | list) -%}
  {%- set keys_csv = acidsql_quoted_csv(acidsql_keys(unique_key)) -%}
  delete from {{ target.render() }} as DBT_INTERNAL_DEST
  where ({{ keys_csv }}) in (select {{ keys_csv }} from {{ source.render() }})
  {%- for predicate in incremental_predicates or [] %}
    and ({{ predicate }})
  {%- endfor -%};
  insert into {{ target.render() }} by name select {{ columns_csv }} from {{ source.render() }}
{%- endmacro %}
