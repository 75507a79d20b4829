"""A small shop in dbt: seeds → staging → facts → history, three times, with other seeds each time.

``make run-dbt`` runs it. Each run is a process of its own, as a scheduler starts it. After each run
the rows are checked.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CUSTOMERS = {
    1: "id,name,city\n1,Ann,Rome\n2,Bob,Oslo\n3,Cleo,Rome\n",
    2: "id,name,city\n1,Ann,Oslo\n2,Bob,Oslo\n3,Cleo,Rome\n",  # Ann has moved
    3: "id,name,city\n1,Ann,Oslo\n2,Bob,Oslo\n4,Dan,Rome\n",  # Cleo has gone, Dan is new
}
ORDERS = {
    1: "11,1,2026-03-01,1050,paid\n12,2,2026-03-02,2000,paid\n13,3,2026-03-02,500,paid\n",
    # 13 was returned, and 14 is new.
    2: "12,2,2026-03-02,2000,paid\n13,3,2026-03-02,500,returned\n14,1,2026-03-03,725,paid\n",
    3: "14,1,2026-03-03,725,paid\n15,4,2026-03-04,999,paid\n",
}
FACTS = {
    1: [(11, "Ann", "10.50", "paid", 1), (12, "Bob", "20.00", "paid", 1),
        (13, "Cleo", "5.00", "paid", 1)],
    2: [(11, "Ann", "10.50", "paid", 1), (12, "Bob", "20.00", "paid", 1),
        (13, "Cleo", "5.00", "returned", 1), (14, "Ann", "7.25", "paid", 2)],
    3: [(11, "Ann", "10.50", "paid", 1), (12, "Bob", "20.00", "paid", 1),
        (13, "Cleo", "5.00", "returned", 1), (14, "Ann", "7.25", "paid", 2),
        (15, "Dan", "9.99", "paid", 3)],
}  # fmt: skip
REVENUE = {
    1: [("Oslo", 1, "20.00"), ("Rome", 2, "15.50")],
    2: [("Oslo", 3, "37.75")],
    3: [("Oslo", 3, "37.75"), ("Rome", 1, "9.99")],
}
# customer, city, whether the row is the newest one, whether it says that the customer has gone
HISTORY = {
    1: [("Ann", "Rome", True, "False"), ("Bob", "Oslo", True, "False"),
        ("Cleo", "Rome", True, "False")],
    2: [("Ann", "Oslo", True, "False"), ("Ann", "Rome", False, "False"),
        ("Bob", "Oslo", True, "False"), ("Cleo", "Rome", True, "False")],
    3: [("Ann", "Oslo", True, "False"), ("Ann", "Rome", False, "False"),
        ("Bob", "Oslo", True, "False"), ("Cleo", "Rome", False, "False"),
        ("Cleo", "Rome", True, "True"), ("Dan", "Rome", True, "False")],
}  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.environ["SHOP_WAREHOUSE"] = f"{directory}/warehouse"
        project = Path(directory, "shop")
        shutil.copytree(HERE, project)
        for number in (1, 2, 3):
            write_seeds(project / "seeds", number)
            run_dbt(project, "build", "--vars", f"{{run: {number}}}")
            rows = read_rows()
            assert rows == {
                "facts": FACTS[number],
                "revenue": REVENUE[number],
                "history": HISTORY[number],
            }, rows
            print(f"Run {number}: all rows are as they should be.")
        run_dbt(project, "docs", "generate")


def write_seeds(seeds: Path, number: int) -> None:
    """Write what the shop has exported for this run."""
    (seeds / "raw_customers.csv").write_text(CUSTOMERS[number])
    header = "id,customer_id,ordered_on,cents,status\n"
    (seeds / "raw_orders.csv").write_text(header + ORDERS[number])


def run_dbt(project: Path, *words: str) -> None:
    """Run dbt in a process of its own, in the project's directory. Raise CalledProcessError if it
    fails."""
    subprocess.run([sys.executable, "-m", "dbt.cli.main", *words], check=True, cwd=project)


QUERIES = {
    "facts": "select order_id, customer, cast(amount as decimal(12, 2)), status, first_loaded_in "
    "from shop.fct_orders",
    "revenue": "select * from shop.revenue_by_city",
    "history": "select name, city, dbt_valid_to is null, dbt_is_deleted "
    "from shop.customers_history",
}


def read_rows() -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the shop's tables, sorted, as another process of acidsql reads them."""
    script = "import runpy, sys; runpy.run_path(sys.argv[1])['print_rows']()"
    command = [sys.executable, "-c", script, __file__]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows: dict[str, list[tuple[Any, ...]]] = ast.literal_eval(answer.splitlines()[-1])
    return rows


def print_rows() -> None:
    import acidsql

    with acidsql.connect(warehouse=os.environ["SHOP_WAREHOUSE"], compactor="off") as acid:
        rows = {
            name: sorted(tuple(map(_plain, row)) for row in acid.sql(query).collect())
            for name, query in QUERIES.items()
        }
    print(rows)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str) else str(value)


if __name__ == "__main__":
    main()
