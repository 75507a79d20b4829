{#- Grants are refused before anything is done. -#}
{% materialization seed, adapter='acidsql' %}
  {%- do acidsql_refuse_grants(config.get('grants')) -%}
  {{ return(materialization_seed_default()) }}
{% endmaterialization %}
