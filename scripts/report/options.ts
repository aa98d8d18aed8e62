import { parseArgs } from 'node:util';
import { z } from 'zod';
import { parseSince, SINCE_HELP, type Since } from './since.ts';

export const REPORTS = ['throughput', 'cost', 'waiting', 'queue', 'failures'] as const;
export type ReportName = (typeof REPORTS)[number];
const FORMATS = ['table', 'csv', 'json'] as const;
export type Format = (typeof FORMATS)[number];

export const USAGE = `npm run report -- REPORT: what the organizations got done, for a terminal or a file

  throughput   tasks and runs that ended, by day and by profile
  cost         what initiatives cost, with all that is below them, and what is outside of them: tasks, chats
  waiting      how long people were waited for
  queue        how long requests waited for a worker
  failures     which acceptance criteria results failed

  --organization ID   of these alone, by id or slug; may be given several times. Without it: of every one that the login reads
  --since WHEN        ${SINCE_HELP}; default 30d
  --format FORMAT     table (the default), csv (RFC 4180) or json (one object a line)
  --currency CODE     the currency in which the workers report what runs cost, such as EUR; without it costs are shown in its
                      minor units, as they are stored

Days are those of the organization's own time zone. The database is that of DATABASE_URL, with the login of an operator or of an
analyst (npm run analyst); without it the one that npm start runs on DATA_DIR. It is only read, as runner_analyst.
With --no-env-file the settings in .env are not read.
For a file: npm run -s report -- throughput --format csv > throughput.csv
`;

/** What a person called it with cannot be done; one line says why. */
export class UsageError extends Error {
  override name = 'UsageError';
}

export type Options = Readonly<{
  report: ReportName;
  organizations: readonly string[];
  since: Since;
  format: Format;
  currency: string | undefined;
}>;

const arguments_ = {
  organization: { type: 'string', multiple: true },
  since: { type: 'string' },
  format: { type: 'string' },
  currency: { type: 'string' },
  help: { type: 'boolean' },
} as const;

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: arguments_, allowPositionals: true });
  } catch (error) {
    // Node's second sentence is about options of the kind --x that are meant as text.
    throw new UsageError((error as Error).message.split('. ')[0] ?? '');
  }
}

function oneOf<T extends string>(what: string, names: readonly T[], given: string): T {
  const found = names.find((name) => name === given);
  if (found === undefined) throw new UsageError(`${what} is one of ${names.join(', ')}, not ${JSON.stringify(given)}`);
  return found;
}

const organizationRef = z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/i);
/** Those of ISO 4217 that are in use, by the data that Node comes with. */
const currencies = new Set(Intl.supportedValuesOf('currency'));

/** @returns undefined when help is asked for; @throws UsageError */
export function parseOptions(argv: readonly string[]): Options | undefined {
  const { values, positionals } = parse(argv);
  if (values.help) return undefined;
  const [report, ...more] = positionals;
  if (report === undefined) throw new UsageError(`name a report: ${REPORTS.join(', ')}`);
  if (more[0] !== undefined)
    throw new UsageError(`one report at a time, and ${JSON.stringify(more[0])} is a second one`);
  const { organization: organizations = [], since: sinceText = '30d', format = 'table', currency } = values;
  for (const organization of organizations) {
    if (!organizationRef.safeParse(organization).success) {
      throw new UsageError(`--organization takes an id or a slug, not ${JSON.stringify(organization)}`);
    }
  }
  const since = parseSince(sinceText);
  if (since === undefined) throw new UsageError(`--since takes ${SINCE_HELP}, not ${JSON.stringify(sinceText)}`);
  if (currency !== undefined && !currencies.has(currency)) {
    throw new UsageError(`--currency takes a code of ISO 4217 such as EUR, not ${JSON.stringify(currency)}`);
  }
  return {
    report: oneOf('the report', REPORTS, report),
    organizations,
    since,
    format: oneOf('--format', FORMATS, format),
    currency,
  };
}
