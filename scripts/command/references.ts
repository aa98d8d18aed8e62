import { CommandError, EXIT, usageError } from './errors.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const LEAST = 4;
const SHOWN = 8;

/** The end of an id, which differs from item to item; its beginning is the time. */
export const shortId = (id: string): string => id.slice(-SHOWN);

/**
 * The one among `items` that `ref` means: its id, or the end of it.
 * @throws CommandError when there is none, or more than one
 */
export function theOne<T extends Readonly<{ id: string }>>(items: readonly T[], ref: string, what: string): T {
  const wanted = ref.toLowerCase();
  if (wanted.length < LEAST) throw usageError(`${JSON.stringify(ref)} is too short for the end of an id`);
  const [one, second] = items.filter(({ id }) => id.endsWith(wanted));
  if (second) throw usageError(`${JSON.stringify(ref)} means several: give more of the id`);
  if (one) return one;
  throw new CommandError(EXIT.notFound, `there is no ${what} ${JSON.stringify(ref)}`);
}

export const isUuid = (text: string): boolean => UUID.test(text);
