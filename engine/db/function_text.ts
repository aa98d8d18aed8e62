import type pg from 'pg';
import {
  type Arguments,
  callForm,
  type Exactly,
  type Expressions,
  type FunctionName,
  type ScalarFunctionName,
} from './signatures.ts';

/** `app.<name>(p_a => …, …)` as text for the driver, around expressions in SQL. */
export function functionText<N extends FunctionName, E extends Expressions<N>>(
  name: N,
  expressions: Exactly<E, Expressions<N>>,
): string {
  const given: Readonly<Record<string, unknown>> = expressions;
  const list = callForm(name, given).args.map(({ key, name: parameter }) => `${parameter} => ${given[key]}`);
  return `app.${name}(${list.join(', ')})`;
}

/** `select app.<name>(…) as result` for the driver. */
export function functionQuery<N extends ScalarFunctionName, A extends Arguments<N>>(
  name: N,
  args: Exactly<A, Arguments<N>>,
): { text: string; values: unknown[] } {
  const given: Readonly<Record<string, unknown>> = args;
  const form = callForm(name, given);
  const list = form.args.map(({ name: parameter }, index) => `${parameter} => $${index + 1}`);
  return {
    text: `select app.${name}(${list.join(', ')}) as result`,
    values: form.args.map(({ key, type }) => {
      const value = given[key] ?? null;
      return type === 'jsonb' && value !== null ? JSON.stringify(value) : value;
    }),
  };
}

/** One function in one statement of the driver: for commands and measurements, which have no pool of `Queries`. */
export async function callWith<N extends ScalarFunctionName, A extends Arguments<N>>(
  client: Pick<pg.ClientBase, 'query'>,
  name: N,
  args: Exactly<A, Arguments<N>>,
): Promise<unknown> {
  const { rows } = await client.query<{ result: unknown }>(functionQuery(name, args));
  return rows[0]?.result;
}
