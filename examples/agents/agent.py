#!/usr/bin/env python3
"""A template for an agent in Python. Copy it, put your model in the place of `work`, and run it for every task:

    npm run worker -- --exec ./examples/agents/agent.py

The worker starts it in a folder of its own, once for each run. TASK.md there says all that counts, as a page to read or
to give to a model; task.json says the same for programs.
"""
import json
import os
import re
import sys
from pathlib import Path


def progress(line: str) -> None:
    """A line in the log of the run, which people see while they wait."""
    with open(os.environ["PROGRESS_FILE"], "a", encoding="utf-8") as log:
        log.write(json.dumps({"label": line}) + "\n")


def end(**result: object) -> None:
    """How the run ends. Without it exit status 0 completes the run, and any other is tried again.

    To wait until actions of the task are over: end(kind="waiting", actionIds=[...], reason="...").
    """
    Path(os.environ["RESULT_FILE"]).write_text(json.dumps(result), encoding="utf-8")
    sys.exit()


def work(page: str, audience: str, inputs: list[Path]) -> str:
    """The work itself: give the page to your model, and return what it writes."""
    title = page.splitlines()[0].split(": ", 1)[1]
    return "\n".join([f"# {title}", "", f"For {audience}.", *(f"- read {file.name}" for file in inputs), ""])


def execute() -> None:
    page = Path("TASK.md").read_text(encoding="utf-8")
    task = json.loads(Path("task.json").read_text(encoding="utf-8"))

    # The last answer that a person gave, else what the title says.
    answers = [answer["response"] for answer in task["state"].get("answers", [])]
    said = re.search(r" for (.+)", task["title"])
    audience = answers[-1] if answers else said and said.group(1)
    if not audience:
        # The task waits, and the next run finds the answer.
        end(kind="needs_input", question="Who is it for?", options=["the team", "the customers"])

    # The file that the first acceptance criterion names.
    criteria = task["spec"].get("acceptanceCriteria", [])
    name = next((one["path"] for one in criteria if one["kind"] == "output_file"), "result.md")

    progress(f"Writing {name}")
    inputs = sorted(file for file in Path(os.environ["INPUT_DIR"]).rglob("*") if file.is_file())
    file = Path(os.environ["OUTPUT_DIR"], name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(work(page, audience, inputs), encoding="utf-8")
    end(summary=f"{name} is written.")


mode = os.environ["BUSINESS_RUNNER_MODE"]
if mode == "execute":
    execute()
elif mode == "chat":
    # The standard output is the reply, which streams while it is written.
    print("You wrote:", Path("message.txt").read_text(encoding="utf-8").strip(), flush=True)
else:
    # For good: another try would change nothing.
    end(kind="failed", code="unsupported", message=f"This agent does not {mode}", retryable=False)
