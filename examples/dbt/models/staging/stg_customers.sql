select id as customer_id, name, city
from {{ ref('raw_customers') }}
