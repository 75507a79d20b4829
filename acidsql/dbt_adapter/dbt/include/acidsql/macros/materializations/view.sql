{% materialization view, adapter='acidsql' %}
  {%- do acidsql_refuse_grants(config.get('grants')) -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ acidsql_run_hooks_before(pre_hooks) }}

  {%- do acidsql_drop_unless(load_cached_relation(this), 'view') -%}
  {%- call statement('main') -%}
    {{ create_view_as(target_relation, sql) }}
  {%- endcall -%}

  {{ acidsql_run_hooks_after(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
