import type { PgCodecWithAttributes, PgResource, PgSelectQueryBuilder } from 'postgraphile/@dataplan/pg';
import { connection, context, lambda } from 'postgraphile/grafast';
import { sql } from 'postgraphile/pg-sql2';
import './grafast_context.ts';
import { shownTables } from './catalog.ts';

type Direction = 'ASC' | 'DESC';

/** By `column` and, so that each row has one place, by the rest of its key. The direction is one, as cursors need it. */
function orderBy(columns: readonly string[], direction: Direction) {
  return (builder: PgSelectQueryBuilder) => {
    for (const attribute of columns) builder.orderBy({ attribute, direction });
    builder.setOrderIsUnique();
  };
}

/** The organization last: within one it is the same, and over all of them it only has to tell rows apart. */
function orderColumns(column: string, key: readonly string[]): string[] {
  return [...new Set([column, ...key.filter((name) => name !== 'organization_id'), ...key])];
}

function ordersOf(table: string, key: readonly string[]): Record<string, ReturnType<typeof orderBy>> {
  const columns = shownTables[table]?.orders;
  if (!columns) return { PRIMARY_KEY_ASC: orderBy(key, 'ASC'), PRIMARY_KEY_DESC: orderBy(key, 'DESC') };
  return Object.fromEntries(
    columns.flatMap((column) =>
      // The newest come first, unless somebody asks for something else.
      (['DESC', 'ASC'] as const).map((direction) => [
        `${column.toUpperCase()}_${direction}`,
        orderBy(orderColumns(column, key), direction),
      ]),
    ),
  );
}

/** The organization of the request as a plain condition: by it, and not by the policy, the planner finds the index. */
function scoped(resource: PgResource) {
  const $select = resource.find();
  const column = resource.name === 'organizations' ? 'id' : 'organization_id';
  if (!(column in (resource.codec.attributes ?? {}))) return $select;
  $select.apply(
    lambda(context().get('organizationId'), (organizationId) => {
      return (builder: PgSelectQueryBuilder) => {
        if (organizationId === null) return;
        builder.where(sql`${builder.alias}.${sql.identifier(column)} = ${sql.value(organizationId)}::uuid`);
      };
    }),
  );
  return $select;
}

/** Lists are ordered by what has an index, paged by cursors alone, and at the root limited to the request's organization. */
export const listsPlugin: GraphileConfig.Plugin = {
  name: 'AdminLists',
  after: ['PgConnectionArgOrderByPlugin', 'PgFirstLastBeforeAfterArgsPlugin'],
  schema: {
    hooks: {
      GraphQLEnumType_values(values, build, { scope }) {
        if (!scope.isPgRowSortEnum || !scope.pgCodec) return values;
        const resource = build.pgTableResource(scope.pgCodec as PgCodecWithAttributes);
        const key = resource?.uniques.find((unique: { isPrimary?: boolean }) => unique.isPrimary)?.attributes ?? [];
        return Object.fromEntries(
          Object.entries(ordersOf(resource?.name ?? '', key)).map(([name, apply]) => [
            name,
            { extensions: { grafast: { apply } } },
          ]),
        );
      },
      GraphQLObjectType_fields_field_args(args) {
        // An offset reads all that it skips.
        const { offset: _, ...kept } = args;
        return kept;
      },
      GraphQLObjectType_fields_field(field, _build, { scope }) {
        const { isRootQuery, isPgFieldConnection, pgFieldResource: resource } = scope;
        if (!isRootQuery || !isPgFieldConnection || !resource) return field;
        return { ...field, plan: () => connection(scoped(resource)) };
      },
    },
  },
};
