import { type FragmentSqlToken, sql } from 'slonik';

/** `alias.column = value` for every given filter, by the names of columns; ids compare as UUIDs. */
export function conditions(alias: string, filters: Readonly<Record<string, string | undefined>>): FragmentSqlToken {
  const given = Object.entries(filters).flatMap(([column, value]) => {
    if (value === undefined) return [];
    const name = sql.identifier([alias, column]);
    return [column.endsWith('_id') ? sql.fragment`${name} = ${value}::uuid` : sql.fragment`${name} = ${value}`];
  });
  return sql.fragment`${sql.join([sql.fragment`true`, ...given], sql.fragment` and `)}`;
}
