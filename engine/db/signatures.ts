import { functions } from './generated/functions.ts';
import type { Signature, SqlType, ValueOf } from './sql_types.ts';

type Signatures = typeof functions;

/** Every function that a login or an operator may call. */
export type FunctionName = keyof Signatures;

/** Those that return one value. */
export type ScalarFunctionName = {
  [N in FunctionName]: Signatures[N] extends { returnsSet: true } ? never : N;
}[FunctionName];

type RequiredOf<N extends FunctionName> = Signatures[N]['required'];
type OptionalOf<N extends FunctionName> = Signatures[N] extends { optional: infer O } ? O : unknown;

/**
 * The arguments of a function; `E` is what may stand in the place of a value. Postgres lets any argument be null, and
 * `undefined` goes as null. One that has a default is left out instead.
 */
export type Arguments<N extends FunctionName, E = never> = {
  readonly [K in keyof RequiredOf<N>]: ValueOf<RequiredOf<N>[K]> | E | null | undefined;
} & {
  readonly [K in keyof OptionalOf<N>]?: ValueOf<OptionalOf<N>[K]> | E | null | undefined;
};

/** The arguments of a function as expressions in SQL. */
export type Expressions<N extends FunctionName> = {
  readonly [K in keyof RequiredOf<N>]: string;
} & {
  readonly [K in keyof OptionalOf<N>]?: string;
};

/** TypeScript refuses unknown keys in literals alone; this refuses them in variables too. */
export type Exactly<A, B> = A & { readonly [K in Exclude<keyof A, keyof B>]: never };

export type Argument = Readonly<{
  key: string;
  /** `p_…` */
  name: string;
  type: SqlType;
}>;

function toArgument([key, type]: readonly [string, SqlType]): Argument {
  return { key, name: `p_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`, type };
}

const known: ReadonlyMap<string, Readonly<{ required: readonly Argument[]; optional: readonly Argument[] }>> = new Map(
  Object.entries<Signature>(functions).map(([name, { required, optional = {} }]) => [
    name,
    { required: Object.entries(required).map(toArgument), optional: Object.entries(optional).map(toArgument) },
  ]),
);

/** The arguments that are given, in the order of the function: what each call of it with the same ones has in common. */
export type CallForm = Readonly<{ name: string; args: readonly Argument[] }>;

const forms = new Map<string, CallForm>();

/** One object a function and set of optional arguments, in whatever order they are given. @throws TypeError for no function of ours */
export function callForm(name: FunctionName, given: Readonly<Record<string, unknown>>): CallForm {
  const signature = known.get(name);
  if (!signature) throw new TypeError(`no function ${name}`);
  let key: string = name;
  for (const argument of signature.optional) if (given[argument.key] !== undefined) key += ` ${argument.key}`;
  const form = forms.get(key);
  if (form) return form;
  const optional = signature.optional.filter((argument) => given[argument.key] !== undefined);
  const made = { name, args: [...signature.required, ...optional] };
  forms.set(key, made);
  return made;
}
