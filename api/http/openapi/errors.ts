import { documentedErrors } from '../declared_errors.ts';
import type { DeclaredError, Endpoint } from '../endpoint.ts';
import { times } from './example_values.ts';
import { type JsonSchema, schemaRef } from './json_schema.ts';
import { pascalCase } from './names.ts';

/** What the service says in words, where that differs from the description of the code. */
const messages: Readonly<Record<string, string>> = {
  validation_failed: 'The request is not valid.',
  organization_not_found: 'There is no organization with this id.',
  task_not_found: 'There is no task with this id or identifier.',
  owner_unauthorized: 'A bearer token is required.',
  agent_unauthorized: 'The bearer token is not valid.',
  admin_unauthorized: 'The bearer token is not valid.',
  run_lease_expired: 'The lease is over: the run request was handed out again.',
  internal_error: 'Something went wrong on our side. The request id names it in our logs.',
  service_unavailable: 'The service cannot reach its database. Try again.',
};

const issues: Readonly<Record<string, readonly JsonSchema[]>> = {
  validation_failed: [{ path: 'title', message: 'is required', code: 'invalid_type' }],
  run_lease_expired: [{ path: 'leaseToken', message: 'The lease is over', code: 'lease_lost' }],
};

const headersByStatus: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  416: ['Content-Range'],
  503: ['Retry-After'],
};

const headerTexts: Readonly<Record<string, readonly [description: string, example: string]>> = {
  'WWW-Authenticate': ['How to authenticate (RFC 6750).', 'Bearer realm="business-runner"'],
  'Content-Range': ['The size of the file, as `bytes */<size>`.', 'bytes */2481'],
  'Retry-After': ['Seconds to wait before the next attempt.', '2'],
};

type Texts = ReadonlyMap<string, string>;

/** Of any call of an audience, whatever it does: said once, as the `default`, unless an endpoint says more about one. */
const ofAnyCall: ReadonlySet<string> = new Set([
  '400 validation_failed',
  '401 owner_unauthorized',
  '401 agent_unauthorized',
  '401 admin_unauthorized',
  '403 forbidden',
  '404 organization_not_found',
  '408 request_timeout',
  '409 idempotency_key_reused',
  '409 idempotency_key_in_use',
  '413 payload_too_large',
  '415 unsupported_media_type',
  '500 internal_error',
  '503 service_unavailable',
]);
const defaultName = ({ audience }: Endpoint) => (audience === 'public' ? 'AnyCall' : `${pascalCase(audience)}Call`);

const keyOf = ({ status, code }: DeclaredError): string => `${status} ${code}`;

/** For each status and code, the description that most endpoints give it. */
function commonTexts(errors: readonly DeclaredError[]): Texts {
  const byKey = Map.groupBy(errors, keyOf);
  return new Map(
    [...byKey].map(([key, alike]) => {
      const texts = [...Map.groupBy(alike, (error) => error.when)].sort((a, b) => b[1].length - a[1].length);
      return [key, texts[0]?.[0] ?? ''];
    }),
  );
}

function describe(errors: readonly DeclaredError[]): string {
  const lines = errors.map(({ code, when }) => `\`${code}\`: ${when}`);
  return lines.length === 1 ? (lines[0] ?? '') : lines.map((line) => `- ${line}`).join('\n');
}

function sentence(text: string): string {
  const plain = text.replaceAll('`', '');
  return `${plain.slice(0, 1).toUpperCase()}${plain.slice(1)}.`;
}

function exampleEnvelope({ status, code, when }: DeclaredError): JsonSchema {
  return {
    success: false,
    statusCode: status,
    message: messages[code] ?? sentence(when),
    error: { code, ...(issues[code] ? { issues: issues[code] } : {}) },
    meta: { timestamp: times.finished },
  };
}

function headersOf(status: number): JsonSchema {
  const names = headersByStatus[status] ?? [];
  if (names.length === 0) return {};
  const described = names.map((name) => {
    const [description, example] = headerTexts[name] ?? [];
    return [name, { description, schema: { type: 'string' }, example }];
  });
  return { headers: Object.fromEntries(described) };
}

const byCode = (a: DeclaredError, b: DeclaredError): number => (a.code < b.code ? -1 : 1);

/** `TaskNotFound`; with its status where the code has several, `RequestFailed404`. */
function componentNames(errors: readonly DeclaredError[]): (error: DeclaredError) => string {
  const statuses = new Map<string, Set<number>>();
  for (const { status, code } of errors) statuses.set(code, (statuses.get(code) ?? new Set()).add(status));
  return ({ status, code }) => `${pascalCase(code)}${statuses.get(code)?.size === 1 ? '' : status}`;
}

export type ErrorResponses = Readonly<{
  /** The error responses of an endpoint, by status or `default`: references, with a description where its own differs. */
  of(endpoint: Endpoint): JsonSchema;
  responses: Record<string, JsonSchema>;
  examples: Record<string, JsonSchema>;
}>;

/** Error responses as shared components: one for each status and set of codes that the endpoints have. */
export function errorResponses(endpoints: readonly Endpoint[]): ErrorResponses {
  const all = endpoints.flatMap(documentedErrors);
  const texts = commonTexts(all);
  const nameOf = componentNames(all);
  const responses: Record<string, JsonSchema> = {};
  const examples: Record<string, JsonSchema> = {};

  const isOfAnyCall = (error: DeclaredError) => ofAnyCall.has(keyOf(error)) && texts.get(keyOf(error)) === error.when;

  function contentOf(errors: readonly DeclaredError[]): JsonSchema {
    for (const error of errors) examples[nameOf(error)] = { value: exampleEnvelope(error) };
    const named = errors.map((error) => [error.code, { $ref: `#/components/examples/${nameOf(error)}` }]);
    return { 'application/json': { schema: schemaRef('ErrorEnvelope'), examples: Object.fromEntries(named) } };
  }

  function shared(status: number, codes: readonly DeclaredError[]): { name: string; description: string } {
    const name = codes.map(nameOf).join('Or');
    const common = codes.map((error) => ({ ...error, when: texts.get(keyOf(error)) ?? error.when }));
    const description = describe(common);
    responses[name] = { description, ...headersOf(status), content: contentOf(common) };
    return { name, description };
  }

  function responseOf(status: number, errors: readonly DeclaredError[]): JsonSchema {
    const sorted = errors.toSorted(byCode);
    const codes = [...new Map(sorted.map((error) => [error.code, error])).values()];
    const { name, description } = shared(status, codes);
    const own = describe(sorted);
    return { $ref: `#/components/responses/${name}`, ...(own === description ? {} : { description: own }) };
  }

  for (const [name, alike] of Map.groupBy(endpoints, defaultName)) {
    const errors = alike.flatMap(documentedErrors).filter(isOfAnyCall);
    const usual = [...new Map(errors.map((error) => [keyOf(error), error])).values()];
    usual.sort((a, b) => a.status - b.status || byCode(a, b));
    const lines = usual.map(({ status, code, when }) => `- ${status} \`${code}\`: ${when}`);
    const headers = [401, 503].map((status) => headersOf(status)['headers']);
    responses[name] = {
      description: ['Besides what a call itself may get:', ...lines].join('\n'),
      headers: Object.assign({}, ...headers),
      content: contentOf(usual),
    };
  }

  return {
    of(endpoint) {
      const own = documentedErrors(endpoint).filter((error) => !isOfAnyCall(error));
      const byStatus = [...Map.groupBy(own, (error) => error.status)];
      return {
        ...Object.fromEntries(byStatus.map(([status, errors]) => [status, responseOf(status, errors)])),
        default: { $ref: `#/components/responses/${defaultName(endpoint)}` },
      };
    },
    responses,
    examples,
  };
}
