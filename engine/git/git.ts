import path from 'node:path';
import type { Logger } from 'pino';
import { sql } from 'slonik';
import { z } from 'zod';
import type { Config } from '../config.ts';
import type { Database } from '../db/database.ts';
import { scoped } from '../db/scope.ts';
import type { Storage } from '../storage/index.ts';
import { removeAbandoned } from './folders.ts';
import { type Mirrors, openMirrors } from './mirrors.ts';

/** What works with repositories needs: made once a process, by the API and by the jobs. */
export type Git = Readonly<{
  settings: Config['git'];
  mirrors: Mirrors;
  /** Of pushes that are checked or sent: private folders, each removed when its work ends. */
  stagingFolder: string;
  db: Database;
  storage: Storage;
  log: Logger;
  /** Removes what processes left that died. */
  clean(): Promise<void>;
}>;

const useRow = z.object({ use: z.enum(['needed', 'idle']) });

/** How often a process looks for what others have left. */
const CLEAN_MS = 600_000;

export function openGit(
  options: Readonly<{ config: Pick<Config, 'git'>; db: Database; storage: Storage; log: Logger }>,
): Git {
  const { db, storage, log } = options;
  const settings = options.config.git;
  const stagingFolder = path.join(settings.folder, 'staging');
  let cleanedAt = Number.NEGATIVE_INFINITY;

  async function useOf(organizationId: string, integrationId: string): Promise<'needed' | 'idle' | 'gone'> {
    const row = await db.of(organizationId).maybeOne(
      scoped(
        organizationId,
        useRow,
        sql.fragment`
          select case when exists (
              select from app.actions a
              where a.organization_id = i.organization_id and a.integration_id = i.id and a.kind = 'git_push'
                and a.status in ('awaiting_approval', 'approved', 'executing', 'unknown')) then 'needed' else 'idle' end as use
          from app.integrations i
          where i.organization_id = scope.organization_id and i.id = ${integrationId}`,
      ),
    );
    return row?.use ?? 'gone';
  }

  return {
    settings,
    mirrors: openMirrors({ folder: path.join(settings.folder, 'mirrors'), maxBytes: settings.mirrorBytes, useOf }),
    stagingFolder,
    db,
    storage,
    log,
    async clean() {
      if (performance.now() - cleanedAt < CLEAN_MS) return;
      cleanedAt = performance.now();
      const removed = await removeAbandoned(stagingFolder);
      if (removed > 0) log.info({ removed }, 'folders of pushes that were cut off are removed');
    },
  };
}
