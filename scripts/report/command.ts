import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileText } from './files.ts';
import { parseOptions, USAGE } from './options.ts';
import { reports } from './reports/index.ts';
import { screenText } from './screen.ts';
import { findOrganizations, openSession } from './session.ts';

export type Output = Readonly<{
  stream: Writable;
  /** How wide it is. */
  columns: number;
  /** Makes a text stand out, or step back, where the stream can show that. */
  style: (kind: 'bold' | 'dim', text: string) => string;
}>;

/**
 * What `npm run report` does with these arguments; `databaseUrl` is asked when they are right.
 * @throws UsageError, ReportError, what `databaseUrl` throws, and EPIPE of the stream
 */
export async function report(argv: readonly string[], databaseUrl: () => string, output: Output): Promise<void> {
  const { stream, columns, style } = output;
  const options = parseOptions(argv);
  if (options === undefined) {
    stream.write(USAGE);
    return;
  }
  const { format, currency, since } = options;
  const session = await openSession(databaseUrl());
  try {
    const organizations = await findOrganizations(session, options.organizations, since);
    const text =
      format === 'table'
        ? screenText({ session, report: options.report, organizations, currency, columns, style })
        : fileText({ session, report: reports[options.report], organizations, format, currency });
    await pipeline(Readable.from(text), stream, { end: false });
  } finally {
    await session.end();
  }
}
