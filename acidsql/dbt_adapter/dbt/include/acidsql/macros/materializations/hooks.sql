{#- CREATE TABLE and CREATE VIEW commit by themselves, so hooks around them are transactions of their
    own. Where a model changes the rows of its table, its hooks are part of that transaction. -#}

{% macro acidsql_run_hooks_before(hooks) %}
  {{ run_hooks(hooks, inside_transaction=False) }}
  {{ run_hooks(hooks, inside_transaction=True) }}
{%- endmacro %}

{% macro acidsql_run_hooks_after(hooks) %}
  {{ run_hooks(hooks, inside_transaction=True) }}
  {{ run_hooks(hooks, inside_transaction=False) }}
{%- endmacro %}


{#- Run statements that change the rows of a model's table, and its hooks, as one transaction. Hooks
    outside of it, and the table's comments, come last. -#}
{% macro acidsql_change_rows_with_hooks(relation, sql, pre_hooks, post_hooks) %}
  {%- do adapter.begin_transaction() -%}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- call statement('main') -%}
    {{ sql }}
  {%- endcall -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {%- do adapter.commit_transaction() -%}

  {%- do persist_docs(relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
{%- endmacro %}
