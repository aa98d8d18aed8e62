// The secrets that went between an API and its providers, and everything that came out of the API: nowhere may one be in the other.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestApp } from './app.ts';
import type { Exchange } from './http_recording.ts';

/** A text that came out, and where. */
export type Told = readonly [where: string, text: string];

/** What stands in requests to providers, and in their responses, under names of secrets. */
export const SECRET_NAMES: ReadonlySet<string> = new Set([
  'access_token',
  'client_secret',
  'code',
  'code_verifier',
  'id_token',
  'nonce',
  'oauth_token',
  'oauth_token_secret',
  'oauth_verifier',
  'refresh_token',
  'registration_access_token',
  'state',
]);
/** A shorter one is no secret, as `code` of an error is none, or could stand in many texts. */
const MIN_LENGTH = 12;

function* fieldsOf(text: string): Generator<readonly [string, unknown]> {
  try {
    yield* Object.entries(JSON.parse(text) as object);
  } catch {
    yield* new URLSearchParams(text);
  }
}

function* credentialsOf(header: string): Generator<readonly [string, unknown]> {
  const [scheme = '', value = ''] = header.split(' ', 2);
  if (/^bearer$/i.test(scheme)) yield ['access_token', value];
  if (/^basic$/i.test(scheme)) {
    const [, password = ''] = Buffer.from(value, 'base64').toString().split(':');
    yield ['client_secret', decodeURIComponent(password)];
  }
  for (const [, name = '', quoted = ''] of header.matchAll(/(oauth_\w+)="([^"]*)"/g)) {
    yield [name, decodeURIComponent(quoted)];
  }
}

/** By its value, the name that each secret went by, of exchanges with providers. */
export function secretsIn(exchanges: readonly Exchange[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const { path: target, requestHeaders, requestBody, head, body } of exchanges) {
    const location = /^location: (.*)$/im.exec(head)?.[1]?.trim();
    const fields = [
      ...new URL(target, 'http://provider').searchParams,
      ...(location === undefined ? [] : new URL(location, 'http://provider').searchParams),
      ...fieldsOf(requestBody),
      ...fieldsOf(body),
      ...credentialsOf(String(requestHeaders['authorization'] ?? '')),
    ];
    for (const [name, value] of fields) {
      const isSecret = SECRET_NAMES.has(name) && typeof value === 'string' && value.length >= MIN_LENGTH;
      if (isSecret && !found.has(value)) found.set(value, name);
    }
  }
  return found;
}

/** As a text could have it: as it is, within JSON, in an address, in base64 at any place of other bytes, and in hexadecimal digits. */
function formsOf(secret: string): ReadonlySet<string> {
  const bytes = Buffer.from(secret);
  const within = [0, 1, 2].map((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    // Without what shares a digit with the bytes beside it.
    const text = padded.subarray(0, padded.length - (padded.length % 3)).toString('base64');
    return text.slice(before === 0 ? 0 : 4);
  });
  const hex = bytes.toString('hex');
  return new Set([
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    new URLSearchParams({ s: secret }).toString().slice(2),
    ...within,
    ...within.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    hex,
    hex.toUpperCase(),
  ]);
}

const PREFIX = 8;

/** Where one of the secrets is told: `name in where: the text around it`. */
export function disclosed(
  told: readonly Told[],
  secrets: ReadonlyMap<string, string>,
  isMeant: (where: string, name: string, text: string) => boolean = () => false,
): string[] {
  const byPrefix = new Map<string, [form: string, name: string][]>();
  for (const [secret, name] of secrets) {
    for (const form of formsOf(secret)) {
      if (form.length < PREFIX) continue;
      const prefix = form.slice(0, PREFIX);
      byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), [form, name]]);
    }
  }
  const found = new Set<string>();
  for (const [where, text] of told) {
    for (let at = 0; at + PREFIX <= text.length; at += 1) {
      for (const [form, name] of byPrefix.get(text.slice(at, at + PREFIX)) ?? []) {
        if (!text.startsWith(form, at) || isMeant(where, name, text)) continue;
        found.add(`${name} in ${where}: ${text.slice(Math.max(0, at - 60), at + form.length + 20)}`);
      }
    }
  }
  return [...found];
}

/** What the API responded with. */
export function responsesOf(app: Pick<TestApp, 'url'>, exchanges: readonly Exchange[]): Told[] {
  const port = Number(new URL(app.url).port);
  return exchanges
    .filter((one) => one.port === port)
    .map(({ method, path: target, head, body }) => [`${method} ${target.split('?', 1)[0]}`, `${head}${body}`]);
}

/** What was exchanged with others than the API. */
export function providersOf(app: Pick<TestApp, 'url'>, exchanges: readonly Exchange[]): Exchange[] {
  const port = Number(new URL(app.url).port);
  return exchanges.filter((one) => one.port !== port);
}

/** All that is stored, as a dump has it: every row of every table and view, jobs that wait among them, and every file. */
async function storedBy({ database, config }: TestApp): Promise<Told[]> {
  const { rows } = await database.owner.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'v', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`,
  );
  const told: Told[] = [];
  for (const { name } of rows) {
    const found = await database.owner.query<{ line: string }>(`select x::text as line from ${name} x`);
    told.push([name, found.rows.map(({ line }) => line).join('\n')]);
  }
  const folder = fileURLToPath(config.storageUrl);
  for (const file of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (!file.isFile()) continue;
    const bytes = await readFile(path.join(file.parentPath, file.name));
    told.push([`file ${file.name}`, `${file.name}\n${bytes.toString()}`]);
  }
  return told;
}

/** Logs, metrics, the description of the API, and all that is stored. */
export async function kept(app: TestApp): Promise<Told[]> {
  const read = async (where: string) => [where, await (await app.owner.fetch(where)).text()] as const;
  return [
    ['log', app.logged.map((line) => JSON.stringify(line)).join('\n')],
    await read('/metrics'),
    await read('/openapi.json'),
    ...(await storedBy(app)),
  ];
}
