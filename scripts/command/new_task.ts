import path from 'node:path';
import { usageError } from './errors.ts';
import { readText, type Values, wholeNumber } from './options.ts';

const OPERATORS = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'exists', 'contains'];
const MAX_INPUT = 200_000;
const EXPECTED = `--expect takes a file, or a file, a JSON pointer, one of ${OPERATORS.join(', ')}, and a value`;

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** "report.json /total gt 0" as an acceptance criterion. @throws CommandError */
function criterionOf(expected: string) {
  const [file = '', pointer, operator = 'exists', ...value] = expected.trim().split(/\s+/);
  if (file === '') throw usageError(EXPECTED);
  const criterion = { kind: 'output_file', path: file };
  if (pointer === undefined) return criterion;
  if (!pointer.startsWith('/') || !OPERATORS.includes(operator)) throw usageError(EXPECTED);
  if (value.length === 0 && operator !== 'exists') throw usageError(EXPECTED);
  const compared = value.length === 0 ? {} : { value: jsonOrText(value.join(' ')) };
  return { ...criterion, checks: [{ kind: 'json_pointer', pointer, operator, ...compared }] };
}

function inputOf(file: string) {
  const text = readText('input', file);
  // What is no text in UTF-8 was read with replacement characters.
  if (text.includes('\ufffd') || text.includes('\0') || text.length > MAX_INPUT) {
    throw usageError(
      `--input takes UTF-8 text of at most ${MAX_INPUT} characters, not ${file}: PUT it to …/inputs/{path}`,
    );
  }
  return { kind: 'inline', path: path.basename(file), text };
}

function givenSpec(file: string): object {
  const spec = jsonOrText(readText('spec', file));
  if (typeof spec === 'object' && spec !== null && !Array.isArray(spec)) return spec;
  throw usageError(`--spec: ${file} is no JSON object`);
}

/** The body of a new task. @throws CommandError */
export function newTask(title: string, values: Values): object {
  const { spec, objective, expect = [], input = [], profile, initiative, priority } = values;
  const whole = spec === undefined ? {} : givenSpec(spec);
  const higher = wholeNumber('priority', priority, { minimum: -1000, maximum: 1000 });
  return {
    title,
    spec: {
      ...whole,
      ...(objective === undefined ? {} : { objective }),
      ...(expect.length === 0 ? {} : { acceptanceCriteria: expect.map(criterionOf) }),
      ...(input.length === 0 ? {} : { inputs: input.map(inputOf) }),
    },
    ...(profile === undefined ? {} : { ownerProfileKey: profile }),
    ...(initiative ? { kind: 'initiative' } : {}),
    ...(values['depends-on'] === undefined ? {} : { dependsOn: values['depends-on'] }),
    ...(higher === undefined ? {} : { priority: higher }),
  };
}
