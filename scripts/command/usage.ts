import { AGENT_USAGES } from './usage_agents.ts';
import { PEOPLE_USAGES } from './usage_people.ts';

// Eighty columns, as every terminal has them.
const USAGE = `business-runner COMMAND [options]: give work to agents, and see what comes of it

  task create TITLE       creates a task; prints its identifier, such as T-1
    --objective TEXT      what is to be achieved, beyond the title
    --expect FILE         a file that the result must have; with a check of its
                          JSON: --expect 'report.json /total gt 0'; repeatable
    --input FILE          a text that the agent is given; repeatable
    --profile KEY         who works on it (default: the operator)
    --initiative          an agent plans it first, as tasks below it
    --depends-on TASK     what has to be completed before; repeatable
    --priority N          higher ones are handed out first (0)
    --spec FILE           the whole spec as JSON; - reads it from standard input
  task list               the latest tasks; --status STATUS, --limit N (20)
  task show TASK          a task with its result, or why it does not go on
  task wait TASK          follows a task until it is over
  task logs TASK          what its runs did, and why they failed
  task cancel TASK        cancels it and everything below it
  task retry TASK         tries again what failed or was cancelled

  org create NAME         an organization with agents; --slug SLUG, --bare for
                          one without agents
  org list                the organizations that you may see

  ask TEXT                sends a message, in a new chat unless --chat ID names
                          one, and prints the reply while it is written
  inbox                   what waits for a person; --status STATUS
  inbox respond ITEM TEXT answers a question; --note TEXT
  inbox acknowledge ITEM  takes a notification off the list

  actions                 what agents propose to change outside, and list, show,
                          approve, reject, reconcile, receipt: actions --help
  receipt verify FILE     checks a receipt, without a network: receipt --help
  context                 the documents that agents are given; context show PATH

  tools, call, git, mcp   for agents in a run: tools --help and so on

  Each has examples: task --help, ask --help and so on.

  TASK is T-1 or an id. ITEM is an id, its last characters as the inbox shows
  them, or the task that asks. ID of a chat likewise.

  --wait                  with create and retry: follow it until it is over
  --timeout SECONDS       the longest time to wait for a task or a reply
  --org ORGANIZATION      slug or id; needed where there are several
  --json                  JSON on standard output, nothing else
  --url URL               the API (http://127.0.0.1:3000, or HOST and PORT)
  --token-file FILE       a file with an owner's token; --token TOKEN is seen in
                          the list of processes
  --no-env-file           does not read the settings in .env
  --help

Ctrl-C ends the waiting, never the work. What is not given by an option is taken
from the environment, then from .env: BUSINESS_RUNNER_URL (else HOST and PORT),
BUSINESS_RUNNER_OWNER_TOKEN, BUSINESS_RUNNER_ORGANIZATION.

Exit status: 0 done, and with --wait completed; 1 refused; 2 the task failed or
was cancelled, or there was no reply; 3 proposed, not done yet (call); 64 wrong
command line; 66 no such organization, task, chat, item or action; 69 the API
does not respond; 75 --timeout is over; 77 no token, or not allowed; 130 Ctrl-C.
`;

const ACTIONS = `business-runner actions [COMMAND] [options]: what agents propose to change
outside, and what people decide about it

  actions, actions list   the latest; --status STATUS, --task TASK, --limit N
  actions show ACTION     one with its arguments, files, decision and result
  actions approve ACTION  shows what will be done, asks, and approves that and
                          nothing else; --note TEXT, --yes does not ask
  actions reject ACTION REASON
                          refuses it for good; agents read the reason
  actions reconcile ACTION OUTCOME --note TEXT
                          says what became of one whose status is unknown:
                          succeeded, failed or not_executed, and how you know
  actions receipt ACTION  the signed receipt of one that is over, to keep

  ACTION is an id, its last characters as the list shows them, or the task whose
  one action waits for it.

  --org, --json, --url, --token-file as in business-runner --help. Decisions
  take an owner's token, with OWNER_AUTH=open too: that of npm start is found.
  In a run (BUSINESS_RUNNER_TOKEN) list and show are about its task or chat.

  npx business-runner actions --status awaiting_approval
  npx business-runner actions list --task T-4
  npx business-runner actions show 7a2b9c01
  npx business-runner actions approve 7a2b9c01 --note "Agreed with the customer"
  npx business-runner actions reject T-4 "The order was never paid"
  npx business-runner actions reconcile 7a2b9c01 failed --note "Not in the shop"
  npx business-runner actions receipt 7a2b9c01 > receipt.json

Exit status: 0 done, also by an earlier call; 1 refused: it was decided
otherwise, has expired or changed, is not over, or you said no; 2 it was
approved before, and has ended without success; 64 wrong command line, or nobody
to ask; 66 no such action; 69 the API does not respond; 77 no token, or not
allowed; 130 Ctrl-C.
`;

const RECEIPT = `business-runner receipt verify FILE --keys FILE: checks the receipt of an
action, without a network

  FILE of --keys is the set of public keys, which the deployment serves at
  /.well-known/business-runner-keys.json: get it over a way that you trust. -
  stands for the standard input.

  --json                  the receipt with its key on standard output

  curl -sS https://runner.example/.well-known/business-runner-keys.json > keys.json
  npx business-runner actions receipt 7a2b9c01 > receipt.json
  npx business-runner receipt verify receipt.json --keys keys.json

Exit status: 0 valid; 1 not what was signed; 64 wrong command line; 65 no
receipt, or no set of keys; 66 a file cannot be read, or the set lacks the key.
`;

const TOPICS: ReadonlyMap<string | undefined, string> = new Map([
  ['actions', ACTIONS],
  ['receipt', RECEIPT],
  ...Object.entries(PEOPLE_USAGES),
  ...Object.entries(AGENT_USAGES),
]);

/** The call that prints the help about a command, by its first word; of what is none, all help. */
export function helpCall(topic: string | undefined): string {
  return ['business-runner', ...(topic !== undefined && TOPICS.has(topic) ? [topic] : []), '--help'].join(' ');
}

/** @param topic the word that help is asked about */
export function usageOf(topic: string | undefined): string {
  return TOPICS.get(topic) ?? USAGE;
}
