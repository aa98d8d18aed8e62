import fc from 'fast-check';
import type { Operation, Parameter } from './openapi.ts';
import { type Components, type Hints, parameterArbitrary, schemaArbitrary, someOf } from './schema_arbitrary.ts';
import { brokenBodies, nasty, nastyText, spoil } from './spoiled.ts';

export type GeneratedBody =
  | Readonly<{ kind: 'json'; value: unknown }>
  | Readonly<{ kind: 'raw'; bytes: Buffer }>
  | undefined;
export type GeneratedRequest = Readonly<{
  params: Readonly<Record<string, unknown>>;
  query: readonly (readonly [string, unknown])[];
  headers: Readonly<Record<string, unknown>>;
  body: GeneratedBody;
  mediaType: string | undefined;
  token: string | undefined;
}>;

function bodyArbitrary(operation: Operation, components: Components, hints: Hints): fc.Arbitrary<GeneratedBody> {
  const raw = fc
    .oneof(
      fc.constantFrom(...brokenBodies).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    )
    .map((bytes): GeneratedBody => ({ kind: 'raw', bytes }));
  const none = fc.constant<GeneratedBody>(undefined);
  if (operation.method === 'GET' || operation.method === 'HEAD') return none;
  if (!operation.body) {
    const empty = fc.constantFrom<GeneratedBody>(undefined, { kind: 'json', value: {} });
    return fc.oneof(
      { weight: 6, arbitrary: empty },
      { weight: 1, arbitrary: raw },
      { weight: 1, arbitrary: nasty.map((value): GeneratedBody => ({ kind: 'json', value })) },
    );
  }
  if (operation.body.mediaType !== 'application/json')
    return fc.oneof({ weight: 5, arbitrary: raw }, { weight: 1, arbitrary: none });
  const fits = schemaArbitrary(operation.body.schema, components, hints);
  const spoilt = fc.tuple(fits, fc.array(fc.nat(1000), { minLength: 1, maxLength: 6 }), nasty);
  return fc.oneof(
    { weight: 8, arbitrary: fits.map((value): GeneratedBody => ({ kind: 'json', value })) },
    {
      weight: 8,
      arbitrary: spoilt.map(
        ([value, picks, other]): GeneratedBody => ({ kind: 'json', value: spoil(value, picks, other) }),
      ),
    },
    { weight: 2, arbitrary: raw },
    { weight: 1, arbitrary: none },
  );
}

/** Requests of an operation: about half of them right, the others with a fault in one place or another. */
export function requestArbitrary(
  operation: Operation,
  given: Readonly<{ components: Components; hints: Hints; token: string | undefined }>,
): fc.Arbitrary<GeneratedRequest> {
  const { components, hints, token } = given;
  const among = (org: Parameter['in']) => operation.parameters.filter((parameter) => parameter.in === org);
  const values = (parameters: readonly Parameter[], wrong: number) =>
    Object.fromEntries(
      parameters.map(({ name, schema }) => [
        name,
        fc.oneof(
          { weight: 12, arbitrary: parameterArbitrary(name, schema, components, hints) },
          { weight: wrong, arbitrary: nastyText },
        ),
      ]),
    );
  const requiredOf = (parameters: readonly Parameter[]) =>
    parameters.filter((parameter) => parameter.required).map((parameter) => parameter.name);
  const query = someOf(values(among('query'), 2), requiredOf(among('query')), hints);
  const headers = someOf(values(among('header'), 1), requiredOf(among('header')), hints);
  const foreign = fc.oneof(
    { weight: 8, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.tuple(nastyText, nastyText), { maxLength: 2 }) },
  );
  const mediaType = operation.body?.mediaType ?? 'application/json';
  const types = [
    'text/plain',
    'application/xml',
    'application/json; charset=utf-16',
    'multipart/form-data',
    'x',
    '',
    'application/merge-patch+json',
  ];
  return fc.record({
    params: fc.record(values(among('path'), 1)),
    query: fc.tuple(query, foreign).map(([known, more]) => [...Object.entries(known), ...more]),
    headers,
    body: bodyArbitrary(operation, components, hints),
    mediaType: fc.oneof(
      { weight: 15, arbitrary: fc.constant(mediaType) },
      { weight: 1, arbitrary: fc.constantFrom(undefined, ...types) },
    ),
    token: fc.oneof(
      { weight: 20, arbitrary: fc.constant(token) },
      { weight: 1, arbitrary: fc.constantFrom('x', '0'.repeat(64), 'é') },
    ),
  });
}
