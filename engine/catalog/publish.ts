import { z } from 'zod';
import { call, type Queries } from '../db/call.ts';
import builtin from './builtin.json' with { type: 'json' };
import { type Catalog, catalogRevision, catalogSchema } from './catalog.ts';

/** The catalog that ships with the project, checked as any other. */
export function builtinCatalog(): Catalog {
  return catalogSchema.parse(builtin);
}

/**
 * Publishes the shipped catalog when none was ever published (AGENT_CATALOG=builtin). Many processes may start at once.
 * A catalog that an operator published is never replaced: a newer shipped one is published by hand.
 */
export async function publishBuiltinCatalog(queries: Queries): Promise<void> {
  const catalog = builtinCatalog();
  await call(queries, 'agent_catalog_publish_if_none', { revision: catalogRevision(catalog), catalog }, z.unknown());
}
