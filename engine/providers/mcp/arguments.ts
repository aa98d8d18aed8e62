import { createContext, Script } from 'node:vm';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { canonicalSha256 } from '../../canonical_json.ts';
import { UNKNOWN_FIELD } from '../../issue_text.ts';
import type { Tool } from '../provider.ts';
import type { ArgumentIssue } from '../tool.ts';

// Arguments are checked by schemas of strangers. They have no patterns (schema.ts), but a few references can still take for ever:
// what runs for one is broken off.

const COMPILE_MS = 1_000;
const VALIDATE_MS = 250;
const MAX_SCHEMAS = 100;
/** One that took too long may have met a busy moment. */
const FAILED_MS = 60_000;
const MAX_ISSUES = 50;
const MAX_MESSAGE = 200;

const OPTIONS = {
  allErrors: true,
  // What a schema says beyond the standard, and formats, are the server's to check.
  strict: false,
  validateFormats: false,
  // Names of `Object.prototype` are no fields of the caller.
  ownProperties: true,
  // A copy at each reference can be longer than the schema by far.
  inlineRefs: false,
  logger: false,
} as const;

const bounded = { run: (): unknown => undefined };
const context = createContext(bounded);
const script = new Script('run()');

/** Runs it without a pause for at most so long. @throws what it throws, or an error when the time is over */
function within<T>(timeout: number, run: () => T): T {
  bounded.run = run;
  try {
    return script.runInContext(context, { timeout });
  } finally {
    bounded.run = () => undefined;
  }
}

/** Without `$schema` nobody says which draft it is: one with lists of items is older than 2020. */
function compiled(schema: Tool['inputSchema']): ValidateFunction | null {
  for (const Draft of [Ajv2020, Ajv]) {
    try {
      return within(COMPILE_MS, () => new Draft(OPTIONS).compile(schema));
    } catch {
      // The error quotes the schema.
    }
  }
  return null;
}

const validators = new LRUCache<string, { validate: ValidateFunction | null }>({ max: MAX_SCHEMAS });

function validatorOf(schema: Tool['inputSchema']): ValidateFunction | null {
  const key = canonicalSha256(schema);
  const known = validators.get(key);
  if (known) return known.validate;
  const validate = compiled(schema);
  validators.set(key, { validate }, validate === null ? { ttl: FAILED_MS } : {});
  return validate;
}

const CODES: Readonly<Record<string, string>> = {
  type: 'invalid_type',
  required: 'invalid_type',
  dependentRequired: 'invalid_type',
  enum: 'invalid_value',
  const: 'invalid_value',
  minimum: 'too_small',
  exclusiveMinimum: 'too_small',
  minLength: 'too_small',
  minItems: 'too_small',
  minProperties: 'too_small',
  maximum: 'too_big',
  exclusiveMaximum: 'too_big',
  maxLength: 'too_big',
  maxItems: 'too_big',
  maxProperties: 'too_big',
  multipleOf: 'not_multiple_of',
};

function issueOf({ instancePath, keyword, params, message = 'is not valid' }: ErrorObject): ArgumentIssue {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const named: Readonly<Record<string, unknown>> = params;
  const unknown = named['additionalProperty'] ?? named['unevaluatedProperty'];
  if (typeof unknown === 'string') {
    return { path: [...path, unknown], message: UNKNOWN_FIELD, code: 'unrecognized_keys' };
  }
  const missing = named['missingProperty'];
  const code = CODES[keyword] ?? 'custom';
  if (typeof missing === 'string') return { path: [...path, missing], message: 'is required', code };
  return { path, message: message.slice(0, MAX_MESSAGE).toWellFormed(), code };
}

const whole = (message: string): readonly ArgumentIssue[] => [{ path: [], message, code: 'custom' }];

/** What of the arguments the schema of a server's tool does not allow. */
export function argumentIssues(schema: Tool['inputSchema'], args: unknown): readonly ArgumentIssue[] {
  const validate = validatorOf(schema);
  if (validate === null) return whole('cannot be checked: the server describes them by a schema that is not valid');
  try {
    if (within(VALIDATE_MS, () => validate(args))) return [];
    return (validate.errors ?? []).slice(0, MAX_ISSUES).map(issueOf);
  } catch {
    return whole('take too long to be checked by the schema of the server');
  } finally {
    validate.errors = null;
  }
}
