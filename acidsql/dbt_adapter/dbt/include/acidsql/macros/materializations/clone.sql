{#- dbt-spark's asks for Delta Lake. Without copies that cost nothing, dbt's own makes views. -#}
{% materialization clone, adapter='acidsql' %}
  {{ return(materialization_clone_default()) }}
{% endmaterialization %}
