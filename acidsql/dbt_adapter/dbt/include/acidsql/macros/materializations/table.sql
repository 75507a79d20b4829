{% materialization table, adapter='acidsql', supported_languages=['sql', 'python'] %}
  {%- set language = model['language'] -%}
  {%- do acidsql_refuse_grants(config.get('grants')) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ acidsql_run_hooks_before(pre_hooks) }}

  {%- do acidsql_drop_unless(load_cached_relation(this), 'table') -%}
  {%- call statement('main', language=language) -%}
    {{ create_table_as(False, target_relation, compiled_code, language) }}
  {%- endcall -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ acidsql_run_hooks_after(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#- A table does not replace a view in one step, nor a view a table: the old one is dropped. -#}
{% macro acidsql_drop_unless(relation, type) %}
  {%- if relation is not none and relation.type != type -%}
    {%- do adapter.drop_relation(relation) -%}
  {%- endif -%}
{%- endmacro %}
