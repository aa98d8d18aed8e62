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
