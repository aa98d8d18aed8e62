import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { declaredErrors } from './declared_errors.ts';
import { type Endpoint, isStream, type JsonResponse } from './endpoint.ts';
import { envelopeSchema, errorEnvelopeSchema } from './envelope.ts';

/** The whole success envelope of an endpoint. */
function successSchema(response: JsonResponse): z.ZodObject {
  return z.object({ ...envelopeSchema(response).shape, data: response.data });
}

const schemas = new WeakMap<Endpoint, z.ZodObject>();
const errors = new WeakMap<Endpoint, ReadonlySet<string>>();

function schemaOf(endpoint: Endpoint): z.ZodObject | undefined {
  if (isStream(endpoint.response)) return undefined;
  const known = schemas.get(endpoint) ?? successSchema(endpoint.response as JsonResponse);
  schemas.set(endpoint, known);
  return known;
}

function errorsOf(endpoint: Endpoint): ReadonlySet<string> {
  const known = errors.get(endpoint) ?? new Set(declaredErrors(endpoint).map((one) => `${one.status} ${one.code}`));
  errors.set(endpoint, known);
  return known;
}

function mismatch(schema: z.ZodType, value: unknown): string | undefined {
  const sent: unknown = JSON.parse(JSON.stringify(value));
  const parsed = schema.safeParse(sent);
  if (!parsed.success) return z.prettifyError(parsed.error);
  // Objects drop what they do not know: a difference is a field that the description does not have.
  if (isDeepStrictEqual(JSON.parse(JSON.stringify(parsed.data)), sent)) return undefined;
  return 'the response has fields that its description does not have';
}

/** What a response has that the endpoint's description does not allow; undefined when all is well. */
export function checkResponse(endpoint: Endpoint, status: number, envelope: unknown): string | undefined {
  if (status >= 400) {
    const wrong = mismatch(errorEnvelopeSchema, envelope);
    if (wrong) return wrong;
    const { code } = errorEnvelopeSchema.parse(envelope).error;
    return errorsOf(endpoint).has(`${status} ${code}`) ? undefined : `${status} ${code} is not a declared error`;
  }
  const schema = schemaOf(endpoint);
  return schema && mismatch(schema, envelope);
}
