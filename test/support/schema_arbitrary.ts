import fc from 'fast-check';

export type JsonSchema = Readonly<Record<string, unknown>>;
export type Components = Readonly<Record<string, JsonSchema>>;

/** What a property of this name should usually hold, so that values mean something to the app that gets them. */
export type Hints = Readonly<Record<string, fc.Arbitrary<unknown>>>;

type Scope = Readonly<{ components: Components; hints: Hints; depth: number }>;

const MAX_DEPTH = 8;
/** Texts and lists are mostly short: their limits are for the spoiler to try. */
const SHORT_TEXT = 30;
const SHORT_LIST = 3;
const FEW_KEYS = 3;

/** Notes that say nothing about which values fit. */
const notes = new Set(['description', 'default', 'examples', 'title', 'contentMediaType', 'deprecated']);
const understood = new Set([
  ...['type', 'const', 'enum', '$ref', 'anyOf', 'oneOf', 'allOf', 'properties', 'required', 'additionalProperties'],
  ...['propertyNames', 'items', 'minItems', 'maxItems', 'minLength', 'maxLength', 'pattern', 'format'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'not'],
]);

const anyJson = fc.jsonValue({ maxDepth: 2 });

function list(value: unknown): readonly JsonSchema[] | undefined {
  return Array.isArray(value) ? (value as JsonSchema[]) : undefined;
}

function number(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

function textOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { format, pattern } = schema;
  if (format === 'uuid') return fc.uuid();
  if (format === 'date-time') {
    return fc
      .date({ min: new Date('2001-01-01'), max: new Date('2099-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  const minLength = number(schema['minLength'], 0);
  const maxLength = number(schema['maxLength'], Number.MAX_SAFE_INTEGER);
  if (typeof pattern === 'string') {
    const fits = fc.stringMatching(new RegExp(pattern), { size: 'small' });
    return fits.filter((text) => text.length >= minLength && text.length <= maxLength);
  }
  const unit = fc.constantFrom<'grapheme' | 'grapheme-ascii'>('grapheme', 'grapheme-ascii');
  return unit
    .chain((one) =>
      fc.string({ unit: one, minLength, maxLength: Math.max(minLength, Math.min(maxLength, SHORT_TEXT)) }),
    )
    .filter((text) => text.length <= maxLength);
}

function objectOf(schema: JsonSchema, scope: Scope): fc.Arbitrary<unknown> {
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>;
  const required = (schema['required'] ?? []) as readonly string[];
  const inner = Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, propertyOf(name, property, scope)]),
  );
  const { additionalProperties: more } = schema;
  if (more === false || more === undefined || Object.keys(inner).length > 0)
    return someOf(inner, required, scope.hints);
  const values = more === true ? anyJson : arbitrary(more as JsonSchema, scope);
  return fc.dictionary(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }), values, { maxKeys: SHORT_LIST });
}

/**
 * Records with all required keys and a few others: with half of all keys, hardly one would have no fault at all. Keys
 * that have a hint are there in every second one.
 */
export function someOf(
  values: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  required: readonly string[],
  hints: Hints,
): fc.Arbitrary<Record<string, unknown>> {
  const optional = Object.keys(values).filter((name) => !required.includes(name));
  const hinted = optional.filter((name) => name in hints);
  const others = optional.filter((name) => !(name in hints));
  return fc
    .tuple(fc.subarray(hinted), fc.subarray(others, { maxLength: Math.min(others.length, FEW_KEYS) }))
    .chain((chosen) => {
      const names = new Set([...required, ...chosen.flat()]);
      return fc.record(Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name))));
    });
}

function propertyOf(name: string, schema: JsonSchema, scope: Scope): fc.Arbitrary<unknown> {
  const hint = scope.hints[name];
  const own = arbitrary(schema, scope);
  return hint ? fc.oneof({ weight: 6, arbitrary: hint }, { weight: 1, arbitrary: own }) : own;
}

function listOf(schema: JsonSchema, scope: Scope): fc.Arbitrary<unknown> {
  const minLength = number(schema['minItems'], 0);
  const maxLength = Math.max(minLength, Math.min(number(schema['maxItems'], SHORT_LIST), SHORT_LIST));
  const items = schema['items'];
  return fc.array(items === undefined ? anyJson : arbitrary(items as JsonSchema, scope), { minLength, maxLength });
}

function ofType(type: unknown, schema: JsonSchema, scope: Scope): fc.Arbitrary<unknown> {
  const min = number(schema['minimum'], -1_000_000);
  const max = number(schema['maximum'], 1_000_000);
  if (type === 'string') return textOf(schema);
  if (type === 'integer')
    return fc.oneof(
      fc.integer({ min, max: Math.min(max, min + 20) }),
      fc.maxSafeInteger().map((n) => Math.min(max, Math.max(min, n))),
    );
  if (type === 'number') return fc.double({ min, max, noNaN: true });
  if (type === 'boolean') return fc.boolean();
  if (type === 'null') return fc.constant(null);
  if (type === 'array') return listOf(schema, scope);
  if (type === 'object') return objectOf(schema, scope);
  throw new Error(`unknown type ${JSON.stringify(type)}`);
}

/**
 * Values that a JSON Schema allows (as far as a schema says it: what the app checks beyond, it may still refuse).
 * @throws Error for a keyword that it does not understand, or a reference that leads nowhere
 */
function arbitrary(schema: JsonSchema, scope: Scope): fc.Arbitrary<unknown> {
  for (const key of Object.keys(schema)) {
    if (!understood.has(key) && !notes.has(key)) throw new Error(`unknown keyword ${key}`);
  }
  const { $ref: reference, const: constant, enum: values, type } = schema;
  if (typeof reference === 'string') {
    const target = scope.components[reference.replace('#/components/schemas/', '')];
    if (!target) throw new Error(`${reference} leads nowhere`);
    if (scope.depth > MAX_DEPTH) return fc.constant(null);
    return arbitrary(target, { ...scope, depth: scope.depth + 1 });
  }
  if (constant !== undefined) return fc.constant(constant);
  if (Array.isArray(values)) return fc.constantFrom(...values);
  const choices = list(schema['anyOf']) ?? list(schema['oneOf']);
  if (choices) return fc.oneof(...choices.map((choice) => arbitrary(choice, scope)));
  const all = list(schema['allOf']);
  if (all) {
    return fc
      .tuple(...all.map((part) => arbitrary(part, scope)))
      .map((parts) => Object.assign({}, ...(parts as object[])));
  }
  if (type === undefined) return anyJson;
  const types = Array.isArray(type) ? type : [type];
  return fc.oneof(...types.map((one) => ofType(one, schema, scope)));
}

export function schemaArbitrary(schema: JsonSchema, components: Components, hints: Hints = {}): fc.Arbitrary<unknown> {
  return arbitrary(schema, { components, hints, depth: 0 });
}

/** A parameter's values, by its name and schema. */
export function parameterArbitrary(name: string, schema: JsonSchema, components: Components, hints: Hints) {
  return propertyOf(name, schema, { components, hints, depth: 0 });
}
