import type { OAuth2Credential } from '../oauth/credential.ts';
import { CursorError, type ReadCall, toolsOf } from '../tool.ts';
import { catalog, property, report, reported } from './report.ts';
import { checkProperty, propertyId as id, type Settings } from './settings.ts';
import { readAdmin, readData, SCOPE } from './site.ts';

const { read } = toolsOf<OAuth2Credential, Settings>();

const propertyId = id.describe('id of a property of the settings');
const scopes = [SCOPE];
const PAGE = 200;

/** The first row of a page. */
function offsetOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (!/^[1-9]\d{0,8}$/.test(cursor)) throw new CursorError();
  return Number(cursor);
}

const tokenOf = ({ access }: Pick<ReadCall<unknown, OAuth2Credential, Settings>, 'access'>) =>
  access.credential.accessToken;

export const tools = [
  read({
    key: 'google_analytics.reports.run',
    title: 'Run a report',
    description: 'Reads metrics of a property by dimensions, for days of its own time zone.',
    scopes,
    input: { propertyId, ...report },
    check: checkProperty,
    async read(call) {
      const { propertyId: of, limit = PAGE, ...asked } = call.args;
      const offset = offsetOf(call.cursor);
      // Both are texts in JSON: Google's 64-bit integers.
      const body = { ...asked, limit: String(limit), offset: String(offset) };
      const path = `properties/${of}:runReport`;
      const data = await readData(call.context, tokenOf(call), { path, body }, reported);
      const end = offset + data.rows.length;
      return { data, nextCursor: data.rows.length > 0 && end < data.rowCount ? String(end) : null };
    },
  }),
  read({
    key: 'google_analytics.metadata.get',
    title: 'List dimensions and metrics',
    description: 'Lists the dimensions and metrics that a property has, those of its own among them.',
    scopes,
    input: { propertyId },
    check: checkProperty,
    read: async (call) => ({
      data: await readData(
        call.context,
        tokenOf(call),
        { path: `properties/${call.args.propertyId}/metadata` },
        catalog,
      ),
    }),
  }),
  read({
    key: 'google_analytics.properties.get',
    title: 'Read a property',
    description: 'Reads name, time zone and currency of a property.',
    scopes,
    input: { propertyId },
    check: checkProperty,
    read: async (call) => ({
      data: await readAdmin(call.context, tokenOf(call), `properties/${call.args.propertyId}`, property),
    }),
  }),
];
