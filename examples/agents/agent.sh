#!/bin/sh
# A template for an agent in shell. Copy it, put your model or program in the place of `work`, and run it for every task:
#   npm run worker -- --exec ./examples/agents/agent.sh
# The worker starts it in a folder of its own, once for each run. TASK.md there says all that counts, as a page to read.
set -eu

# A line in the log of the run, which people see while they wait.
progress() { echo "$1" >> "$PROGRESS_FILE"; }

# Ends this run with a question. The task waits, and the next run finds the answer in TASK.md.
ask() {
  printf '{"kind": "needs_input", "question": "%s", "options": ["the team", "the customers"]}\n' "$1" > "$RESULT_FILE"
  exit 0
}

# Ends this run until actions of the task are over, given as "ID", "ID": an owner may have to approve them first.
await_actions() {
  printf '{"kind": "waiting", "actionIds": [%s], "reason": "the actions"}\n' "$1" > "$RESULT_FILE"
  exit 0
}

# Ends the task for good: another try would change nothing. Without a RESULT_FILE, exit status 1 is tried again.
give_up() {
  printf '{"kind": "failed", "code": "unsupported", "message": "%s", "retryable": false}\n' "$1" > "$RESULT_FILE"
  exit 1
}

# What it was asked for, from TASK.md: `# T-1: The title` comes first.
title=$(sed -n '1s/^# [TI]-[0-9]*: //p' TASK.md 2> /dev/null || true)

# The work itself. What it prints becomes the file.
work() {
  printf '# %s\n\nFor %s.\n' "$title" "$1"
  find "$INPUT_DIR" -type f | while read -r file; do echo "- read ${file#"$INPUT_DIR"/}"; done
}

case "$BUSINESS_RUNNER_MODE" in
  execute) ;;
  chat) # The standard output is the reply, which streams while it is written.
    printf 'You wrote: %s\n' "$(cat message.txt)"
    exit 0 ;;
  *) give_up "This agent does not $BUSINESS_RUNNER_MODE" ;;
esac

# The last answer that a person gave, else what the title says.
audience=$(awk '
  /^## / { answers = $0 == "## What people answered"; next }
  answers && /^  Answer: / { said = substr($0, 11); open = 1; next }
  answers && open && /^    / { said = said "\n" substr($0, 5); next } # Its further lines stand deeper.
  { open = 0 }
  END { print said }' TASK.md)
[ -n "$audience" ] || audience=$(printf '%s\n' "$title" | sed -n 's/.* for //p')
[ -n "$audience" ] || ask "Who is it for?"

# The file that the first acceptance criterion names.
file=$(sed -n 's/^- `\([^`]*\)` is uploaded.*/\1/p' TASK.md | head -n 1)
file=${file:-result.md}

progress "Writing $file"
mkdir -p "$(dirname "$OUTPUT_DIR/$file")"
work "$audience" > "$OUTPUT_DIR/$file"
printf '{"summary": "%s is written."}\n' "$file" > "$RESULT_FILE"
