import { type FragmentSqlToken, type SerializableValue, sql, type ValueExpression } from 'slonik';
import { type Arguments, type CallForm, callForm, type Exactly, type FunctionName } from './signatures.ts';
import type { SqlType } from './sql_types.ts';

/** The text around the values of each form, as a template literal has it. */
const templates = new WeakMap<CallForm, TemplateStringsArray>();

function templateOf(form: CallForm): TemplateStringsArray {
  const known = templates.get(form);
  if (known) return known;
  const { name, args } = form;
  const heads = args.map((argument, index) => `${index > 0 ? ', ' : `app.${name}(`}${argument.name} => `);
  const texts = args.length > 0 ? [...heads, ')'] : [`app.${name}()`];
  const made = Object.freeze(Object.assign(texts, { raw: Object.freeze([...texts]) }));
  templates.set(form, made);
  return made;
}

const nullJson = sql.fragment`${null}::jsonb`;

/** With the cast that slonik writes beside a value of the type, so that null makes no text of its own. */
function boundNull(type: SqlType): ValueExpression {
  if (type === 'jsonb') return nullJson;
  return type.endsWith('[]') ? sql.fragment`${null}::${sql.identifier([type.slice(0, -2)])}[]` : null;
}

const fragmentType = sql.fragment``.type;

/** By a symbol, which no JSON holds. */
function isFragment(value: unknown): value is FragmentSqlToken {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === fragmentType;
}

function bound(type: SqlType, value: unknown): ValueExpression {
  if (value === null || value === undefined) return boundNull(type);
  if (isFragment(value)) return value;
  if (type === 'jsonb') return sql.jsonb(value as SerializableValue);
  if (Array.isArray(value)) return sql.array(value, type.slice(0, -2));
  return value as ValueExpression;
}

/**
 * `app.<name>(p_a => …, …)` as a part of a query, its values bound by the types of the function's arguments. In the place of a
 * value an expression may stand, as a fragment.
 */
export function functionCall<N extends FunctionName, A extends Arguments<N, FragmentSqlToken>>(
  name: N,
  args: Exactly<A, Arguments<N>>,
): FragmentSqlToken {
  const given: Readonly<Record<string, unknown>> = args;
  const form = callForm(name, given);
  return sql.fragment(templateOf(form), ...form.args.map(({ key, type }) => bound(type, given[key])));
}
