import type { Client } from 'pg';

type Column = Readonly<{ view: string; about: string | null; column: string; type: string; comment: string | null }>;

const HEAD = `# Data dictionary

The views of schema \`reporting\`, for analysts. Made from the comments in these files by
\`npm run generate\`; a test compares them.

Every view begins with \`organization_id\`: filter by it where a login reads several organizations, so that indexes are used.
Points in time are \`timestamptz\`. Costs are whole minor units of the currency, and null where they were not reported. Seconds
are exact numbers with microseconds. Views join by equal names: \`using (organization_id, task_id)\`.
`;

function cell(text: string | null): string {
  return (text ?? '').replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/** The data dictionary of the database's reporting views, in Markdown. */
export async function dictionary(client: Client): Promise<string> {
  const { rows } = await client.query<Column>(
    `select c.relname as view, obj_description(c.oid, 'pg_class') as about, a.attname as column,
       format_type(a.atttypid, a.atttypmod) as type, col_description(c.oid, a.attnum) as comment
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'reporting'::regnamespace and c.relkind = 'v'
     -- Summaries last; by code points, the same in every database.
     order by obj_description(c.oid, 'pg_class') like 'Summary: %', c.relname collate "C", a.attnum`,
  );
  const views = [...new Set(rows.map(({ view }) => view))].map((name) => {
    const columns = rows.filter(({ view }) => view === name);
    const lines = columns.map(({ column, type, comment }) => `| \`${column}\` | ${type} | ${cell(comment)} |`);
    return `\n## ${name}\n\n${columns[0]?.about ?? ''}\n\n| Column | Type | |\n|---|---|---|\n${lines.join('\n')}\n`;
  });
  return HEAD + views.join('');
}
