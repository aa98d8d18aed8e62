/** A few values that are dear to make, by their keys; what was not asked for the longest goes first. */
export type Kept<T> = Readonly<{ get(key: string, make: () => T): T }>;

export function kept<T>(size: number): Kept<T> {
  const values = new Map<string, T>();
  return {
    get(key, make) {
      const value = values.get(key) ?? make();
      values.delete(key);
      values.set(key, value);
      const oldest = values.keys().next();
      if (values.size > size && !oldest.done) values.delete(oldest.value);
      return value;
    },
  };
}
