// Eighty columns, as every terminal has them.
const ENVIRONMENT = `  The worker sets BUSINESS_RUNNER_URL, BUSINESS_RUNNER_TOKEN (of this run) and
  BUSINESS_RUNNER_ORGANIZATION.
`;

const TOOLS = `business-runner tools [KEY]: the integrations that this run may use, and
their tools; with KEY those of one, with their arguments

  --json                  as the API has it, with the schemas of the arguments

${ENVIRONMENT}
  business-runner tools
  business-runner tools web-shop

Exit status: 0 done; 1 refused; 64 wrong command line; 66 no such integration;
69 the API does not respond; 77 no token, or the run is over.
`;

const CALL = `business-runner call KEY TOOL: calls a tool of an integration. A read prints
what the provider says, as JSON; a write becomes an action, which a person may
have to approve, and is printed with its status

  --json [JSON]           the arguments as a JSON object (- reads it from the
                          standard input), and prints the whole response
  --arguments JSON        the arguments alone
  --arg NAME=VALUE        one argument, by its type in the tool; repeatable
  --file ARGUMENT=PATH    a file that the tool takes, up to 1 GiB; repeatable.
                          Nothing may write to it meanwhile
  --to FOLDER             saves the files that a read brings, each whole or not
                          at all; with --json, path says where
  --cursor CURSOR         the next page of a read
  --timeout SECONDS       how long the provider may take, 60 at most
  --repeat                proposes a write although an equal one is open or done
  --retry-of ACTION       another attempt at an action that failed
  --invocation UUID       names the call: the same again is done once

${ENVIRONMENT}
  business-runner call shop stripe.charges.list --arg limit=5
  business-runner call shop stripe.refunds.create --json '{"charge": "ch_1"}'

Exit status: 0 the result, or an action that succeeded; 3 an action that is not
done yet: awaiting approval, approved, executing or unknown; 2 an action that
ended without success; 1 refused; 64 wrong command line; 65 wrong arguments, or
a file that is none, empty, too large, or changed while it was sent; 66 no such
integration, tool or file; 69 the API or the provider does not respond, or a
file broke off; 77 no token, the run is over, or the provider forbids it; 130
Ctrl-C.
`;

const GIT = `business-runner git KEY OWNER/REPO [FOLDER]: clones a repository of an
integration into FOLDER; without it, prints the git command for that

  Fetches and pushes in the clone work as well. git asks this command for the
  password: the token is in no address, file or list of processes. A push is an
  action; git says that it is rejected, and which action is awaited.

  --json                  the address and the settings of git

${ENVIRONMENT}
  business-runner git code acme/shop shop
  git -C shop push origin HEAD:refs/heads/my-change

Exit status: 0 done; 1 refused, or git failed; 64 wrong command line; 66 no such
integration; 69 the API does not respond, or there is no git; 77 no token, or
the run is over.
`;

const GIT_CREDENTIAL = `business-runner git-credential KEY VERB: a credential helper of git, which the
clones of business-runner git call by themselves

  VERB is get, store or erase; only get prints something. It reads what git asks
  for from its standard input, and prints the password for the gateway alone.

${ENVIRONMENT}
  business-runner git-credential code get

Exit status: 0 done; 1 refused; 64 wrong command line; 66 no such integration;
69 the API does not respond; 77 no token, or the run is over.
`;

const CONTEXT = `business-runner context [COMMAND]: what the organization has published about
itself

  context, context list   the documents, as SCOPE/PATH
  context show PATH       one of them

  In a run these are the documents that it was given (below INPUT_DIR); with an
  owner's token those of the organization.

  business-runner context
  business-runner context list --json
  business-runner context show organization/facts.json

Exit status: 0 done; 64 wrong command line; 66 no such document; 69 the API does
not respond; 77 no token, or not allowed.
`;

const MCP = `business-runner mcp: an MCP server on the standard streams with the same
functions as tools, and each tool of an integration under a name of its own

  --to FOLDER             where the files that reads bring are saved; without
                          it in a folder that is removed when the server ends
  --timeout SECONDS       how long a provider may take, 60 at most, unless the
                          call says it

  A result names its files with their paths, and has a link to each. A tool that
  takes files is called by call_tool, with their paths. A call that the client
  cancels is broken off at the provider as well. Many MCP clients give a call up
  after 60 s: for large files set a longer time-out there.

${ENVIRONMENT}
  business-runner mcp

  In the settings of an agent program that speaks MCP:
  {"mcpServers": {"runner": {"command": "business-runner", "args": ["mcp"]}}}

  It ends with its standard input. What is no message there is passed over, and
  told on the standard error.

Exit status: 0 its input is over; 64 wrong command line; 65 a line of more than
10 MiB; 77 no token; 130 Ctrl-C.
`;

/** Help about the commands of agents, by topic. */
export const AGENT_USAGES: Readonly<Record<string, string>> = {
  tools: TOOLS,
  call: CALL,
  git: GIT,
  'git-credential': GIT_CREDENTIAL,
  context: CONTEXT,
  mcp: MCP,
};
