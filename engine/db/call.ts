import { type CommonQueryMethods, type ListSqlToken, type SerializableValue, sql, type ValueExpression } from 'slonik';
import { z } from 'zod';
import { appendEntry, type Decision } from './decision.ts';
import { Problem, problemSchema } from './problem.ts';

export type Queries = Pick<CommonQueryMethods, 'one' | 'maybeOne' | 'any' | 'many' | 'query'>;

const refusal = z.object({ problem: problemSchema });
/** Of a transition whose answer nobody reads. */
export const anyAnswer = z.unknown();
const answerRow = z.object({ result: z.unknown() });

/** A jsonb argument. */
export function json(value: unknown) {
  return value === null || value === undefined ? null : sql.jsonb(value as SerializableValue);
}

/** A text[] argument. */
export function textArray(values: readonly string[] | undefined) {
  return values === undefined ? null : sql.array([...values], 'text');
}

/** A uuid[] argument. */
export function uuidArray(values: readonly string[] | undefined) {
  return values === undefined ? null : sql.array([...values], 'uuid');
}

export type Argument = ValueExpression | ListSqlToken | undefined;

/**
 * Few answers are refusals, and a parse that fails is dear: what it answers has accessors of its own, which V8 makes for the old
 * generation, half a kilobyte each that only a full collection frees.
 */
function refusalOf(result: unknown) {
  if (typeof result !== 'object' || result === null || !('problem' in result)) return undefined;
  return refusal.safeParse(result).data?.problem;
}

/**
 * One transition in one round trip: `select app.<name>(p_a => $1, …)`, whose jsonb result is parsed by `schema`.
 * `undefined` and `null` both go as null. With a decision, its entry in the audit log goes with it: in the same statement, so
 * that there is never one without the other; where the transition raises, nothing was decided.
 * @throws Problem when the function refuses, by `app.fail` (mapped where errors are mapped) or by `{problem}`.
 */
export async function call<S extends z.ZodType>(
  queries: Queries,
  name: string,
  args: Readonly<Record<string, Argument>>,
  schema: S,
  decision?: Decision,
): Promise<z.output<S>> {
  const list = Object.entries(args).map(
    ([key, value]) => sql.fragment`${sql.identifier([key])} => ${(value ?? null) as ValueExpression}`,
  );
  const transition = sql.fragment`select ${sql.identifier(['app', name])}(${list.length > 0 ? sql.join(list, sql.fragment`, `) : sql.fragment``}) as result`;
  const row = await queries.one(
    decision
      ? sql.type(answerRow)`
          with answer as materialized (${transition})
          select answer.result, ${appendEntry(decision, sql.fragment`answer.result`)} as entry
          from answer`
      : sql.type(answerRow)`${transition}`,
  );
  const refused = refusalOf(row.result);
  if (refused) throw new Problem(refused.status, refused.code, refused.message, refused.issues);
  return schema.parse(row.result);
}
