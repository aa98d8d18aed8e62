import { styleText } from 'node:util';
import { ConfigError, readConfig } from '../engine/config.ts';
import { NoDatabaseError, operatorDatabaseUrl } from './database_url.ts';
import { loadEnvironmentFile } from './environment_file.ts';
import { report } from './report/command.ts';
import { UsageError } from './report/options.ts';
import { ReportError } from './report/session.ts';
import { printError } from './terminal.ts';

/** Of a screen whose width nobody says. */
const COLUMNS = 100;

try {
  const { stdout } = process;
  // The report hears of them too.
  stdout.on('error', () => {});
  await report(loadEnvironmentFile(process.argv.slice(2)), () => operatorDatabaseUrl(readConfig()), {
    stream: stdout,
    columns: stdout.columns || COLUMNS,
    // It leaves text alone where the stream is no terminal or NO_COLOR is set.
    style: (kind, text) => styleText(kind, text, { stream: stdout }),
  });
} catch (error) {
  // Whoever reads has seen enough, as `head` has.
  const { code = '' } = error as NodeJS.ErrnoException;
  const readerGone = code === 'EPIPE';
  const unwritten = ['ENOSPC', 'EDQUOT', 'EIO'].includes(code);
  const known = [ConfigError, NoDatabaseError, ReportError, UsageError].some((kind) => error instanceof kind);
  if (!known && !readerGone && !unwritten) throw error;
  const more = error instanceof UsageError ? ' (npm run report -- --help)' : '';
  const what = unwritten ? 'the report cannot be written: ' : '';
  if (!readerGone) printError(`${what}${(error as Error).message}${more}`);
  process.exitCode = error instanceof UsageError ? 64 : error instanceof ConfigError ? 78 : readerGone ? 0 : 1;
}
