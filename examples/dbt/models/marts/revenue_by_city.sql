{{ config(materialized='table') }}

select
    c.city,
    count(*) as number_of_orders,
    cast(sum(f.amount) as decimal(12, 2)) as revenue
from {{ ref('fct_orders') }} as f
join {{ ref('stg_customers') }} as c on c.customer_id = f.customer_id
where f.status <> 'returned'
group by c.city
