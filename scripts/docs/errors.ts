import { codeTexts, recordTexts } from './error_texts.ts';
import { raised } from './raised.ts';
import { reasonTexts } from './reason_texts.ts';

const AUDIENCES = ['owner', 'agent', 'worker', 'admin', 'public'];

/** What zod says of a value; messages are ours, codes are its own. */
const ZOD_CODES = [
  'invalid_type',
  'too_big',
  'too_small',
  'invalid_format',
  'not_multiple_of',
  'unrecognized_keys',
  'invalid_union',
  'invalid_key',
  'invalid_element',
  'invalid_value',
  'custom',
];
/** Codes of responses that records and issues have as well. */
const SHARED = ['internal_error', 'run_lease_expired', 'not_found', 'forbidden'];
/** A prefix in the code, whose values are named one by one. */
const PREFIXES: Readonly<Record<string, readonly string[]>> = { 'bytes_…': ['bytes_changed', 'bytes_missing'] };

/** @throws Error that names what is raised and has no text, or has a text and is never raised */
function compare(what: string, raisedCodes: Iterable<string>, texts: readonly string[]): void {
  const wanted = new Set(raisedCodes);
  const missing = [...wanted].filter((code) => !texts.includes(code));
  const unused = texts.filter((code) => !wanted.has(code));
  if (missing.length > 0) throw new Error(`scripts/docs/error_texts.ts has no text for ${what} ${missing.join(', ')}`);
  if (unused.length > 0) throw new Error(`nothing raises ${what} ${unused.join(', ')} (scripts/docs/error_texts.ts)`);
}

function who(audiences: ReadonlySet<string>): string {
  if (audiences.size === 0 || audiences.size === AUDIENCES.length) return 'all';
  return AUDIENCES.filter((audience) => audiences.has(audience)).join(', ');
}

/** The text of docs/errors.md. @throws Error when codes and texts do not fit each other */
export function errorsPage(): string {
  const { codes, others } = raised();
  compare('the code', codes.keys(), Object.keys(codeTexts));
  const named = [...others].flatMap((code) => PREFIXES[code] ?? code);
  compare(
    'the reason',
    [...named, ...ZOD_CODES, ...SHARED],
    [...Object.keys(reasonTexts), ...Object.keys(recordTexts)],
  );

  const codeRows = Object.entries(codeTexts).map(([key, [when, what]]) => {
    const [status, code] = key.split(' ');
    return `| ${status} | \`${code}\` | ${who(codes.get(key) ?? new Set())} | ${when} | ${what} |`;
  });
  const rows = (texts: typeof reasonTexts) =>
    Object.entries(texts).map(([code, [of, when, what]]) => `| \`${code}\` | ${of} | ${when} | ${what} |`);

  return `# Errors

Made from the codes that functions and modules raise, and from \`scripts/docs/error_texts.ts\`, by \`npm run docs -- write\`. A code without
a text, or a text without a code, fails the test.

Every refusal is an envelope with \`error.code\` and, where there is more to say, \`error.issues\` (\`path\`, \`message\`, \`code\`). Which
codes an audience gets is in [interface.md](interface.md#71-codes-follow-the-audience) 7.1; which an operation can return is in the OpenAPI document.

Retry what is 408, 429, 500 or 503, and nothing else without a change. 429 and 503 carry \`Retry-After\`. Under an \`Idempotency-Key\` a \`POST\`
is safe to repeat; so is every call of a worker, with the same body.

## Codes

| status | code | audience | when | what to do |
|---|---|---|---|---|
${codeRows.join('\n')}

## Reasons

The \`code\` of an issue. Where a code stands for several reasons, the first issue tells them apart.

| reason | of | when | what to do |
|---|---|---|---|
${rows(reasonTexts).join('\n')}

## Codes in records

These are no responses: they say why a run, a task, a message, a source or a piece of research ended as it did, or what a review or a
health report found. A runtime may report any code of its own in \`failRun\`.

| code | where | means | what to do |
|---|---|---|---|
${rows(recordTexts).join('\n')}
`;
}
