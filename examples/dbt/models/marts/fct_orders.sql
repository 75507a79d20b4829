{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='order_id',
    partition_by='ordered_on',
    merge_exclude_columns=['first_loaded_in']
) }}

select
    o.order_id,
    o.customer_id,
    c.name as customer,
    o.amount,
    o.status,
    {{ var('run') }} as first_loaded_in,
    o.ordered_on
from {{ ref('stg_orders') }} as o
join {{ ref('stg_customers') }} as c on c.customer_id = o.customer_id
{% if is_incremental() %}
-- Orders of the last days may have changed; older ones have not.
where o.ordered_on >= (select date_sub(max(ordered_on), 3) from {{ this }})
{% endif %}
