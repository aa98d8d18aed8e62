import type { z } from 'zod';

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
};

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'a UUID',
  guid: 'a UUID',
  url: 'a URL',
  email: 'an email address',
  datetime: 'an instant such as 2030-01-31T12:00:00Z',
  date: 'a date such as 2030-01-31',
  time: 'a time such as 12:00',
};

export const UNKNOWN_FIELD = 'is not a known field';

type Limit = Readonly<{ origin: string; inclusive?: boolean; exact?: boolean }>;

function limitText({ origin, inclusive, exact }: Limit, side: 'least' | 'most', limit: number | bigint): string {
  const unit = origin === 'string' ? 'character' : ['array', 'set', 'map'].includes(origin) ? 'item' : '';
  if (unit !== '') {
    if (side === 'least' && Number(limit) === 1 && !exact) return 'must not be empty';
    return `must have ${exact ? 'exactly' : `at ${side}`} ${limit} ${unit}${Number(limit) === 1 ? '' : 's'}`;
  }
  if (inclusive === false) return `must be ${side === 'least' ? 'greater' : 'less'} than ${limit}`;
  return `must be at ${side} ${limit}`;
}

function choiceText(values: readonly unknown[]): string {
  const texts = values.map(String);
  return texts.length === 1 ? `must be ${texts[0]}` : `must be one of ${texts.join(', ')}`;
}

/** A field that is looked at before others, and says which of them there are. */
function isMissing({ input, ...issue }: z.core.$ZodRawIssue): boolean {
  if (issue.code !== 'invalid_union' || typeof issue['discriminator'] !== 'string') return input === undefined;
  return typeof input === 'object' && input !== null && !Object.hasOwn(input, issue['discriminator']);
}

/**
 * What is wrong with a value, after the name of its field, in the words of our own messages; Zod's stand in for others. Given to a
 * parse as its `error`; the message that a schema has of its own comes first.
 */
export const issueText: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type': {
      if (isMissing(issue)) return 'is required';
      const type = TYPES[issue.expected];
      return type && `must be ${type}`;
    }
    case 'invalid_value':
      return isMissing(issue) ? 'is required' : choiceText(issue.values);
    case 'invalid_union':
      if (isMissing(issue)) return 'is required';
      return issue.errors.length === 0 && 'options' in issue && Array.isArray(issue['options'])
        ? choiceText(issue['options'])
        : undefined;
    case 'too_small':
      return limitText(issue, 'least', issue.minimum);
    case 'too_big':
      return limitText(issue, 'most', issue.maximum);
    case 'invalid_format': {
      const format = FORMATS[issue.format];
      return format && `must be ${format}`;
    }
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return UNKNOWN_FIELD;
    default:
      return undefined;
  }
};
