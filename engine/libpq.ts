import { accessSync, constants } from 'node:fs';

/** A variable of libpq that cannot be followed: one line that names it. */
export class LibpqError extends Error {
  override name = 'LibpqError';
}

/** All of libpq's variables begin like this; settings of psql itself do not. */
const LIBPQ = /^PG[A-Z]/;

/** The environment without what libpq and the driver of Node take from it. */
export function withoutLibpq(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !LIBPQ.test(name)));
}

// Whoever sets one of these counts on it, and the driver of Node does not know it. A pattern: the values that count.
const UNKNOWN: Readonly<Record<string, RegExp>> = {
  PGSERVICE: /./,
  PGHOSTADDR: /./,
  PGREQUIREAUTH: /./,
  PGCHANNELBINDING: /^require$/,
  PGGSSENCMODE: /^require$/,
};

const FILES = { sslrootcert: 'PGSSLROOTCERT', sslcert: 'PGSSLCERT', sslkey: 'PGSSLKEY' } as const;

function readable(name: string, file: string): string {
  try {
    accessSync(file, constants.R_OK);
    return file;
  } catch (error) {
    throw new LibpqError(`${name}: ${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Adds TLS as the environment asks for it, where the URL does not say. */
function addTls(parameters: URLSearchParams, environment: NodeJS.ProcessEnv): void {
  const mode = environment['PGSSLMODE'];
  if (!mode || ['sslmode', 'ssl', 'sslrootcert', 'sslcert', 'sslkey'].some((name) => parameters.has(name))) return;
  // The driver does not try both: what promises nothing is done without TLS, as where nothing is set.
  if (['disable', 'allow', 'prefer'].includes(mode)) {
    parameters.set('sslmode', 'disable');
    return;
  }
  if (!['require', 'verify-ca', 'verify-full'].includes(mode)) {
    throw new LibpqError('PGSSLMODE: must be disable, allow, prefer, require, verify-ca or verify-full');
  }
  for (const [parameter, name] of Object.entries(FILES)) {
    const file = environment[name];
    // That of the system is what Node takes by itself.
    if (file && file !== 'system') parameters.set(parameter, readable(name, file));
  }
  if (mode === 'verify-ca' && !parameters.has('sslrootcert')) {
    throw new LibpqError('PGSSLROOTCERT: a file is required by PGSSLMODE=verify-ca');
  }
  parameters.set('sslmode', mode);
  parameters.set('uselibpqcompat', 'true');
}

/**
 * The URL with what libpq would take from the environment, where the URL does not say it. Host, port, user, password and
 * database of the environment are the driver's own business: it takes them as libpq does.
 * @throws LibpqError
 */
export function withLibpq(url: string, environment: NodeJS.ProcessEnv): string {
  for (const [name, values] of Object.entries(UNKNOWN)) {
    if (values.test(environment[name] ?? '')) {
      throw new LibpqError(`${name}: is not known here: say it in DATABASE_URL, and unset it`);
    }
  }
  const port = environment['PGPORT'] || '5432';
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw new LibpqError('PGPORT: must be a port');
  const parsed = new URL(url);
  const { searchParams } = parsed;
  const given = String(searchParams);
  addTls(searchParams, environment);
  const options = environment['PGOPTIONS'];
  if (options && !searchParams.has('options')) searchParams.set('options', options);
  return String(searchParams) === given ? url : parsed.href;
}

// What Postgres or the driver says, and where the setting stands that it is about.
const HINTS: readonly (readonly [RegExp, string])[] = [
  [/no encryption|SSL off/i, 'sslmode in DATABASE_URL, or PGSSLMODE, may ask for TLS'],
  [/\bSSL\b|\bTLS\b|certificate|altname/i, 'by sslmode in DATABASE_URL, or PGSSLMODE'],
  [/configuration parameter|command-line argument|for parameter/i, 'by options in DATABASE_URL, or PGOPTIONS'],
];

/** Why a connection was not made, with the setting that it depends on. */
export function connectionProblem(error: unknown): string {
  // With several addresses, each error has its own reason and their sum has none.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const message = first instanceof Error ? first.message : String(first);
  const hint = HINTS.find(([pattern]) => pattern.test(message))?.[1];
  return hint ? `${message} (${hint})` : message;
}
