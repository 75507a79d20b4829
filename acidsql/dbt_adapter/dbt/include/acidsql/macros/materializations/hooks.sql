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
