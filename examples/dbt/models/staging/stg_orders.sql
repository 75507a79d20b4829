select
    id as order_id,
    customer_id,
    ordered_on,
    cast(cents as decimal(12, 2)) / 100 as amount,
    status
from {{ ref('raw_orders') }}
