"""``dbt clone``: ACID tables have no copies that cost nothing, so clones are views."""

from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseCloneNotPossible as TestCloneNotPossible
