import { type CommonQueryMethods, type FragmentSqlToken, sql } from 'slonik';
import { z } from 'zod';
import { appendEntry, type Decision } from './decision.ts';
import { functionCall } from './function_call.ts';
import { Problem, problemSchema } from './problem.ts';
import type { Arguments, Exactly, ScalarFunctionName } from './signatures.ts';

export type Queries = Pick<CommonQueryMethods, 'one' | 'maybeOne' | 'any' | 'many' | 'query'> &
  Readonly<{
    /** Hands on whom a call wakes (`app.wake`): at once, or after the commit of the transaction that this is of. */
    wake(wakes: string): void;
  }>;

const refusal = z.object({ problem: problemSchema });
/** Of a transition whose result nobody reads. */
export const ignored = z.unknown();
const resultRow = z.object({ result: z.unknown(), wakes: z.string().nullable() });

/**
 * Few results are refusals, and a parse that fails is expensive: what it returns has accessors of its own, which V8 makes for
 * the old generation, half a kilobyte each that only a full collection frees.
 */
function refusalOf(result: unknown) {
  if (typeof result !== 'object' || result === null || !('problem' in result)) return undefined;
  return refusal.safeParse(result).data?.problem;
}

/**
 * One expression in one round trip, whose result is parsed by `schema`: `call`, without its types.
 * @throws Problem when the result is a refusal, `{problem}`; where a function refuses by `app.fail`, errors are mapped elsewhere
 */
export async function evaluate<S extends z.ZodType>(
  queries: Queries,
  expression: FragmentSqlToken,
  schema: S,
  decision?: Decision,
): Promise<z.output<S>> {
  const row = await queries.one(
    decision
      ? sql.type(resultRow)`
          with called as materialized (select ${expression} as result)
          select called.result, current_setting('app.wakes', true) as wakes,
            ${appendEntry(decision, sql.fragment`called.result`)} as entry
          from called`
      : sql.type(resultRow)`select ${expression} as result, current_setting('app.wakes', true) as wakes`,
  );
  // Also of one that refuses: it may have changed state all the same.
  if (row.wakes) queries.wake(row.wakes);
  const refused = refusalOf(row.result);
  if (refused) throw new Problem(refused.status, refused.code, refused.message, refused.issues);
  return schema.parse(row.result);
}

/**
 * One transition in one round trip, `select app.<name>(…)`, whose jsonb result is parsed by `schema`. With a decision, its entry
 * in the audit log goes with it: in the same statement, so that there is never one without the other; where the transition
 * raises, nothing was decided. Whom it wakes comes with the result, and is handed on after the commit.
 * @throws Problem when the function refuses, by `app.fail` (mapped where errors are mapped) or by `{problem}`.
 */
export function call<N extends ScalarFunctionName, A extends Arguments<N>, S extends z.ZodType>(
  queries: Queries,
  name: N,
  args: Exactly<A, Arguments<N>>,
  schema: S,
  decision?: Decision,
): Promise<z.output<S>> {
  return evaluate(queries, functionCall(name, args), schema, decision);
}
