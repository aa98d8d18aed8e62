import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { styleText } from 'node:util';
import { ConfigError, readConfig } from '../engine/config.ts';
import { NoDatabaseError, operatorDatabaseUrl } from './database_url.ts';
import { fileText } from './report/files.ts';
import { parseOptions, USAGE, UsageError } from './report/options.ts';
import { reports } from './report/reports/index.ts';
import { screenText } from './report/screen.ts';
import { findOrganizations, openSession, ReportError } from './report/session.ts';

/** Of a screen whose width nobody says. */
const COLUMNS = 100;

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  const { report, format, currency, since } = options;
  const session = await openSession(operatorDatabaseUrl(readConfig()));
  try {
    const organizations = await findOrganizations(session, options.organizations, since);
    const { stdout } = process;
    // styleText leaves text alone where the stream is no terminal or NO_COLOR is set.
    const style = (kind: 'bold' | 'dim') => (text: string) => styleText(kind, text, { stream: stdout });
    const text =
      format === 'table'
        ? screenText({
            session,
            report,
            organizations,
            currency,
            columns: stdout.columns ?? COLUMNS,
            bold: style('bold'),
            dim: style('dim'),
          })
        : fileText({ session, report: reports[report], organizations, format, currency });
    await pipeline(Readable.from(text), stdout, { end: false });
  } finally {
    await session.end();
  }
}

try {
  await main();
} catch (error) {
  // Whoever reads has seen enough, as `head` has.
  const readerGone = error instanceof Error && 'code' in error && error.code === 'EPIPE';
  const known = [ConfigError, NoDatabaseError, ReportError, UsageError].some((kind) => error instanceof kind);
  if (!known && !readerGone) throw error;
  const more = error instanceof UsageError ? ' (npm run report -- --help)' : '';
  if (!readerGone) process.stderr.write(`${(error as Error).message}${more}\n`);
  process.exitCode = error instanceof UsageError ? 2 : error instanceof ConfigError ? 78 : readerGone ? 0 : 1;
}
