import type { Pool } from 'pg';
import { makePgService } from 'postgraphile/adaptors/pg';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';
import { PostGraphileConnectionFilterPreset } from 'postgraphile-plugin-connection-filter';
import { computedPlugin } from './computed.ts';
import { countsPlugin } from './counts.ts';
import type { DatabaseFacts } from './facts.ts';
import { listsPlugin } from './lists.ts';
import { mutationsPlugin } from './mutations.ts';
import { relationTags, shownPlugin, stateEnums } from './tables.ts';

/** Reads alone, one row or a page of them: what changes something is a transition, and a mutation of our own. */
const unused = [
  'AddNodeInterfaceToSuitableTypesPlugin',
  'MutationPayloadQueryPlugin',
  'NodeAccessorPlugin',
  'NodeIdCodecBase64JSONPlugin',
  'NodeIdCodecPipeStringPlugin',
  'NodePlugin',
  'PgConditionArgumentPlugin',
  'PgConditionCustomFieldsPlugin',
  'PgConnectionArgFilterBackwardRelationsPlugin',
  'PgConnectionArgFilterComputedAttributesPlugin',
  'PgConnectionArgFilterForwardRelationsPlugin',
  'PgConnectionArgFilterLogicalOperatorsPlugin',
  'PgConnectionArgFilterRecordFunctionsPlugin',
  'PgConnectionTotalCountPlugin',
  'PgContextPlugin',
  'PgIndexBehaviorsPlugin',
  'PgMutationCreatePlugin',
  'PgMutationPayloadEdgePlugin',
  'PgMutationUpdateDeletePlugin',
  'PgNodeIdAttributesPlugin',
  'PgOrderAllAttributesPlugin',
  'PgOrderByPrimaryKeyPlugin',
  'PgOrderCustomFieldsPlugin',
  'PgProceduresPlugin',
  'PgTableNodePlugin',
  'QueryQueryPlugin',
  'RegisterQueryNodePlugin',
  'SubscriptionPlugin',
  'SwallowErrorsPlugin',
] as const;

/** The admin schema over the tables of `app`, with what `pool`'s role may read. */
export function adminPreset(pool: Pool, facts: DatabaseFacts): GraphileConfig.Preset {
  return {
    extends: [PostGraphileAmberPreset, PostGraphileConnectionFilterPreset],
    plugins: [
      relationTags(facts),
      stateEnums(facts),
      shownPlugin,
      listsPlugin,
      computedPlugin,
      countsPlugin,
      mutationsPlugin,
    ],
    disablePlugins: [...unused],
    pgServices: [makePgService({ pool, schemas: ['app'], pubsub: false })],
    schema: {
      connectionFilterAllowedOperators: [
        'equalTo',
        'in',
        'lessThan',
        'lessThanOrEqualTo',
        'greaterThan',
        'greaterThanOrEqualTo',
      ],
      connectionFilterArrays: false,
      // What clients send when a variable is left out: no condition.
      connectionFilterAllowEmptyObjectInput: true,
    },
  };
}
