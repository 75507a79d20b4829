{#- Spark 4 has LISTAGG with an order, which dbt-spark's macro leaves out. A limit cuts the list at a
    character that no text has. -#}
{% macro acidsql__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set order = 'within group (' ~ order_by_clause ~ ')' if order_by_clause else '' -%}
  {%- if limit_num -%}
    array_join(slice(split(listagg({{ measure }}, '\u001f') {{ order }}, '\u001f'), 1, {{ limit_num }}), {{ delimiter_text }})
  {%- else -%}
    listagg({{ measure }}, {{ delimiter_text }}) {{ order }}
  {%- endif -%}
{%- endmacro %}
