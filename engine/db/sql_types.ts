/**
 * What goes as JSON; its members are checked by the schemas of requests, or are made here. No function takes a scalar: a string
 * would be a text that is made JSON twice.
 */
export type Json = readonly unknown[] | Readonly<{ [key: string]: unknown }>;

type ValueOfElement = {
  bool: boolean;
  date: string;
  int4: number;
  /** Text where a number might not hold it. */
  int8: number | string;
  jsonb: Json;
  text: string;
  timestamptz: string;
  uuid: string;
};
type ElementType = keyof ValueOfElement;

/** The types of arguments, by their names in the catalog. */
export type SqlType = ElementType | `${ElementType}[]`;

/** What TypeScript gives for an argument of a type. */
export type ValueOf<T> = T extends `${infer E extends ElementType}[]`
  ? readonly (ValueOfElement[E] | null)[]
  : T extends ElementType
    ? ValueOfElement[T]
    : never;

/** A function's arguments by their names in camelCase, without `p_`; `optional` are those that have a default. */
export type Signature = Readonly<{
  required: Readonly<Record<string, SqlType>>;
  optional?: Readonly<Record<string, SqlType>>;
  returnsSet?: true;
}>;
