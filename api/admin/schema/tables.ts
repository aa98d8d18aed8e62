import { enumCodec } from 'postgraphile/@dataplan/pg';
import { gatherConfig } from 'postgraphile/graphile-build';
import { sql } from 'postgraphile/pg-sql2';
import { type PgSmartTagRule, pgSmartTags } from 'postgraphile/utils';
import { camelCase, relations, shownTables } from './catalog.ts';
import { type DatabaseFacts, keyOf } from './facts.ts';

/** Both ways of each relation, by tags: on the key where there is one, else as a key that only the schema knows. */
export function relationTags(facts: DatabaseFacts): GraphileConfig.Plugin {
  const rules: PgSmartTagRule[] = [];
  const made = new Map<string, string[]>();
  for (const { table, columns, references, referenced, field, back } of relations) {
    const hidden = `hidden_${camelCase(table)}_${field}`;
    if (facts.foreignKeys.has(keyOf(table, columns))) {
      rules.push({
        kind: 'constraint',
        match: (key) =>
          key.contype === 'f' &&
          key.getClass()?.relname === table &&
          (key.getAttributes() ?? []).map((attribute) => attribute.attname).join() === columns.join(),
        tags: { fieldName: field, foreignFieldName: back ?? hidden, ...(back ? {} : { backwardBehavior: '-*' }) },
      });
      continue;
    }
    const tags = [`@fieldName ${field}`, `@foreignFieldName ${back ?? hidden}`];
    if (!back) tags.push('@backwardBehavior -*');
    const key = `(${columns.join(',')}) references app.${references} (${referenced.join(',')})|${tags.join('|')}`;
    made.set(table, [...(made.get(table) ?? []), key]);
  }
  for (const [table, keys] of made) rules.push({ kind: 'class', match: `app.${table}`, tags: { foreignKey: keys } });
  return pgSmartTags(rules, null, { name: 'AdminRelationTags' });
}

/** States are domains over text in the tables, and enums in the schema, one for each column. */
export function stateEnums(facts: DatabaseFacts): GraphileConfig.Plugin {
  return {
    name: 'AdminStateEnums',
    inflection: {
      replace: {
        // A domain may have the name of an enum, and takes no part in the schema itself.
        typeCodecName(previous, _options, details) {
          const name = previous?.(details) ?? details.pgType.typname;
          return details.pgType.typtype === 'd' ? `domain_${name}` : name;
        },
      },
    },
    gather: gatherConfig({
      hooks: {
        pgCodecs_attribute(_info, { pgAttribute, attribute }) {
          const table = pgAttribute.getClass()?.relname ?? '';
          const values = facts.states.get(`${table}.${pgAttribute.attname}`);
          if (!values || !(table in shownTables)) return;
          attribute.codec = enumCodec({
            name: camelCase(`${table.replace(/s$/, '')}_${pgAttribute.attname}`),
            // Compared as text: comparisons of enums would not use indexes under row security.
            identifier: sql`text`,
            values: [...values],
          });
        },
      },
    }),
  };
}

/** Names as a person would give them, and nothing shown that the catalog does not name. */
export const shownPlugin: GraphileConfig.Plugin = {
  name: 'AdminShownTables',
  inflection: {
    replace: {
      // Pages have these endings: `integration_connections` would be the page of `integrations`.
      tableType(previous, _options, codec) {
        const name = previous?.(codec) ?? codec.name;
        return /(Connection|Edge)$/.test(name) ? `${name}Record` : name;
      },
      // There are no global ids here that `id` could be confused with.
      _attributeName(_previous, _options, { attributeName }) {
        return attributeName;
      },
      _allRows(previous, _options, resource) {
        return shownTables[resource.name]?.list ?? previous?.(resource) ?? resource.name;
      },
      rowByUnique(previous, _options, details) {
        const one = shownTables[details.resource.name]?.one;
        return (details.unique.isPrimary ? one : undefined) ?? previous?.(details) ?? details.resource.name;
      },
    },
  },
  schema: {
    entityBehavior: {
      pgResource: {
        override: {
          provides: ['shown'],
          callback(behavior, resource) {
            const shown = shownTables[resource.name];
            if (!shown) return [behavior, '-*'];
            const lists = shown.list ? [] : (['-query:resource:connection'] as const);
            return [behavior, '-query:resource:list', '-resource:list', ...lists];
          },
        },
      },
      pgResourceUnique: {
        override: {
          provides: ['shown'],
          callback(behavior, [resource, unique]) {
            return unique.isPrimary && shownTables[resource.name]?.one ? behavior : [behavior, '-single'];
          },
        },
      },
      pgCodecAttribute: {
        override: {
          provides: ['shown'],
          callback(behavior, [codec, attribute]) {
            // The codec's own name is in camelCase.
            const { filters = [], hidden = [] } = shownTables[codec.extensions?.pg?.name ?? ''] ?? {};
            if (hidden.includes(attribute)) return [behavior, '-*'];
            return [behavior, filters.includes(attribute) ? 'attribute:filterBy' : '-attribute:filterBy'];
          },
        },
      },
    },
  },
};
