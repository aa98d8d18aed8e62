// Eighty columns, as every terminal has them.
const TASK = `business-runner task COMMAND [options]: gives tasks to agents and follows them

  create TITLE, list, show TASK, wait TASK, logs TASK, cancel TASK, retry TASK,
  with the options that business-runner --help lists

  npx business-runner task create "Price list" --expect prices.md --wait
  npx business-runner task create "Total the sales" --input sales.csv \\
    --expect 'report.json /total gt 0' --priority 5
  npx business-runner task list --status failed --limit 5
  npx business-runner task show T-1
  npx business-runner task wait T-1 --timeout 600
  npx business-runner task logs T-1
  npx business-runner task cancel T-1
  npx business-runner task retry T-1 --wait

Exit status: 0 done, and with --wait or wait completed; 1 refused; 2 the task
failed or was cancelled; 64 wrong command line; 66 no such task or organization;
69 the API does not respond; 75 --timeout is over; 77 no token, or not allowed;
130 Ctrl-C.
`;

const ORG = `business-runner org COMMAND [options]: organizations

  org create NAME         one with agents; --slug SLUG, --bare for none
  org list                those that you may see; --limit N (20)

  npx business-runner org create "Lamp Studio" --slug lamps
  npx business-runner org list

Exit status: 0 done; 1 refused; 64 wrong command line; 69 the API does not
respond; 77 no token, or not allowed.
`;

const ASK = `business-runner ask TEXT: sends a message and prints the reply while it is
written

  --chat ID               continues this chat; without it, begins a new one
  --timeout SECONDS       the longest time to wait for the reply

  npx business-runner ask "Which orders are late?"
  npx business-runner ask "And last week?" --chat 7a2b9c01 --timeout 60

Exit status: 0 the reply is complete; 1 refused; 2 the reply failed or was
cancelled; 64 wrong command line; 66 no such chat or organization; 69 the API
does not respond; 75 --timeout is over; 77 no token, or not allowed; 130 Ctrl-C.
`;

const INBOX = `business-runner inbox [COMMAND]: what waits for a person

  inbox                   the latest items; --status STATUS, --limit N (20)
  inbox respond ITEM TEXT answers a question; --note TEXT
  inbox acknowledge ITEM  takes a notification off the list

  npx business-runner inbox --status open
  npx business-runner inbox respond T-4 "Ship it on Monday" --note "Agreed"
  npx business-runner inbox acknowledge 7a2b9c01

Exit status: 0 done; 1 refused; 64 wrong command line; 66 no such item; 69 the
API does not respond; 77 no token, or not allowed.
`;

/** Help about the commands of people, by topic. */
export const PEOPLE_USAGES: Readonly<Record<string, string>> = { task: TASK, org: ORG, ask: ASK, inbox: INBOX };
