import { functionText } from '../../engine/db/function_text.ts';
import type { TestOrganization } from './fixtures.ts';
import type { Sql } from './transitions.ts';

const SEARCH = functionText('chats_search', {
  organizationId: '$1',
  search: '$2',
  status: 'null',
  lastMessageAtUs: 'null',
  id: 'null',
  inclusive: 'false',
  backward: 'false',
  limit: '100',
});

/** The titles of the chats that a search finds. */
export async function foundTitles(sql: Sql, org: TestOrganization, words: string): Promise<string[]> {
  const { rows } = await sql.api.query(`select title from ${SEARCH}`, [org.organizationId, words]);
  return rows.map(({ title }) => String(title));
}
