import { sql } from 'slonik';
import { z } from 'zod';
import { builtinCatalog, catalogRevision, catalogSchema } from '../../engine/catalog/index.ts';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';

/** The template catalog. */
export const agentCatalogSchema = z
  .object({
    revision: z.string().describe('SHA-256 of the canonical JSON (RFC 8785) of `catalog`, in hex.'),
    catalog: catalogSchema,
  })
  .meta({ id: 'AgentCatalog' });
export type AgentCatalog = z.output<typeof agentCatalogSchema>;

/**
 * The catalog that was published last.
 * @throws Problem 503 `request_failed` when none ever was
 */
export async function currentCatalog(db: Queries): Promise<AgentCatalog> {
  const current = await db.maybeOne(sql.type(agentCatalogSchema)`
    select c.revision, c.catalog
    from app.agent_catalogs c
    order by c.ordinal desc
    limit 1`);
  if (!current) throw new Problem(503, 'request_failed', 'No template catalog is published.');
  return current;
}

const shipped = builtinCatalog();
/** The shipped catalog, with its first profiles alone. */
export const agentCatalogExample = {
  revision: catalogRevision(shipped),
  catalog: { ...shipped, profiles: shipped.profiles.slice(0, 2) },
} satisfies AgentCatalog;
