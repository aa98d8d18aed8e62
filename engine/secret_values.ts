type Values = Readonly<Record<string, unknown>>;

/** What stands in the place of a secret value. */
export const HIDDEN = '[hidden]';

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const schemasOf = (value: unknown): readonly Values[] => (Array.isArray(value) ? value : [value]).filter(isObject);
const namedIn = (value: unknown): readonly Values[] => (isObject(value) ? schemasOf(Object.values(value)) : []);

const BRANCHES = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else'];
const MEMBERS = ['items', 'prefixItems', 'additionalItems', 'contains', 'unevaluatedItems'];

/** What a reference within a schema names: `#/$defs/key`. */
function referenced(root: Values, reference: unknown): readonly Values[] {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return [];
  let at: unknown = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) return [];
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    at = Object.hasOwn(at, name) ? (at as Values)[name] : undefined;
  }
  return schemasOf(at);
}

/** All schemas that may hold for a value, of each branch. Each once: references may lead in circles. */
function holding(root: Values, given: readonly Values[]): ReadonlySet<Values> {
  const found = new Set(given);
  for (const schema of found) {
    const branches = BRANCHES.flatMap((word) => schemasOf(schema[word]));
    const others = [...referenced(root, schema['$ref']), ...namedIn(schema['dependentSchemas'])];
    for (const one of [...branches, ...others]) found.add(one);
  }
  return found;
}

function ofProperty(schema: Values, name: string): readonly Values[] {
  const { properties } = schema;
  const own = isObject(properties) && Object.hasOwn(properties, name) ? schemasOf(properties[name]) : [];
  const others = own.length === 0 ? schemasOf(schema['additionalProperties']) : [];
  return [...own, ...others, ...namedIn(schema['patternProperties']), ...schemasOf(schema['unevaluatedProperties'])];
}

function shown(root: Values, value: unknown, schemas: ReadonlySet<Values>): unknown {
  if (schemas.size === 0) return value;
  for (const { writeOnly, format } of schemas) if (writeOnly === true || format === 'password') return HIDDEN;
  const all = [...schemas];
  if (Array.isArray(value)) {
    const ofMembers = holding(
      root,
      all.flatMap((schema) => MEMBERS.flatMap((word) => schemasOf(schema[word]))),
    );
    return value.map((one) => shown(root, one, ofMembers));
  }
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, one]) => {
    const ofOne = all.flatMap((schema) => ofProperty(schema, name));
    return [name, shown(root, one, holding(root, ofOne))];
  });
  return Object.fromEntries(entries);
}

/**
 * Arguments without the values that the schema of their tool marks as secret: by `writeOnly`, or the format `password`. Where branches
 * differ, a value that is secret in one of them is not shown.
 */
export function withoutSecrets(values: Values, schema: Values | null): Values {
  if (schema === null) return values;
  const kept = shown(schema, values, holding(schema, [schema]));
  return isObject(kept) ? kept : Object.fromEntries(Object.keys(values).map((name) => [name, HIDDEN]));
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;

function* textsIn(value: unknown): Generator<string> {
  if (isNested(value)) for (const one of Object.values(value)) yield* textsIn(one);
  else if (typeof value === 'string' || typeof value === 'number') yield String(value);
}

function* textsBehind(value: unknown, kept: unknown): Generator<string> {
  if (kept === HIDDEN) yield* textsIn(value);
  else if (isNested(value)) {
    for (const [name, one] of Object.entries(value)) yield* textsBehind(one, (kept as Values)[name]);
  }
}

/** The texts and numbers of arguments that the schema of their tool marks as secret. */
export function secretTexts(values: Values, schema: Values | null): readonly string[] {
  return [...new Set(textsBehind(values, withoutSecrets(values, schema)))].filter((text) => text !== '');
}

/** Shorter ones stand within many words, so they are hidden only where they stand alone. */
const SHORT = 6;
/** Each is looked for in all of a text. */
const MAX_TEXTS = 100;

function hiddenIn(text: string, secret: string): string {
  if (secret.length >= SHORT) return text.replaceAll(secret, HIDDEN);
  const escaped = secret.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  return text.replace(new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, 'gu'), HIDDEN);
}

/** A text in base64 that begins at a byte which is none of a group: without the characters that it shares with its neighbours. */
function base64Within(secret: string, before: number): string {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
  const whole = bytes.length - (bytes.length % 3);
  return bytes
    .subarray(0, whole)
    .toString('base64')
    .slice(before === 0 ? 0 : before + 1);
}

/** A credential as a server may repeat it: as it is, in an address, in base64 of either alphabet within other bytes, or in hexadecimal. */
export function writtenForms(secret: string): readonly string[] {
  const base64 = [0, 1, 2].map((before) => base64Within(secret, before));
  const base64url = base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  const hex = Buffer.from(secret).toString('hex');
  const encoded = [...base64, ...base64url, hex, hex.toUpperCase()].filter((text) => text.length >= SHORT);
  return [...new Set([secret, encodeURIComponent(secret.toWellFormed()), ...encoded])];
}

/** Says of texts whether they hold one of these credentials, however it is written. Shorter ones stand in many words. */
export function repeating(secrets: readonly string[]): (text: string) => boolean {
  const forms = secrets.filter((secret) => secret.length >= SHORT).flatMap(writtenForms);
  return (text) => forms.some((form) => text.includes(form));
}

/** A value without texts that are secret, as they are and as JSON writes them within a text; `evenNames`: in the names of fields too. */
export function withoutTexts(
  value: unknown,
  secrets: readonly string[],
  { evenNames = false }: Readonly<{ evenNames?: boolean }> = {},
): unknown {
  if (secrets.length === 0) return value;
  if (secrets.length > MAX_TEXTS) return HIDDEN;
  const written = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  // A secret may be a part of another one.
  const all = [...new Set(written)].sort((one, other) => other.length - one.length);
  const hide = (one: unknown): unknown => {
    if (typeof one === 'string') return all.reduce(hiddenIn, one);
    if (typeof one === 'number') return secrets.includes(String(one)) ? HIDDEN : one;
    if (Array.isArray(one)) return one.map(hide);
    if (!isObject(one)) return one;
    const shownName = (name: string) => (evenNames ? all.reduce(hiddenIn, name) : name);
    return Object.fromEntries(Object.entries(one).map(([name, inner]) => [shownName(name), hide(inner)]));
  };
  return hide(value);
}
