{#- The code that runs a Python model: adapters/acidsql/python_models.py gives it its functions. -#}

{% macro acidsql_python_model(temporary, relation, compiled_code) %}
  {%- set create -%}
    create or replace table {{ relation.render() }}
    {{ acidsql_table_clauses() }}
    as select * from {model_rows}
  {%- endset -%}
{{ compiled_code }}

model_rows = model(dbtObj(load_model), spark)
{%- if temporary %}
write_view(model_rows, {{ relation.identifier | tojson }})
{%- else %}
write_table(model_rows, {{ create | tojson }})
{%- endif %}
{%- endmacro %}
