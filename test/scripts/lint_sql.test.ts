import t from 'tap';
import { lintSql } from '../../scripts/lint_sql/lint.ts';
import { SQL_FOLDER } from '../support/catalog_rules.ts';

t.test('the files of sql/ keep the conventions', async (test) => {
  test.same(await lintSql(SQL_FOLDER), []);
});

const TABLE = `-- Things.
create table app.things (
  organization_id uuid not null,
  id uuid not null,
  constraint things_pkey primary key (organization_id, id),
  constraint things_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade
);
alter table app.things enable row level security;
alter table app.things force row level security;
create policy owner_all on app.things to runner_owner using (true) with check (true);
comment on table app.things is 'Things; it''s all in here: SELECT.';
comment on column app.things.organization_id is 'The organization.';
comment on column app.things.id is 'Its id.';
`;
const TRANSITION = `-- (none) → a thing. Codes: 404 not_found.
create or replace function app.thing_create(p_organization_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
begin
  with things as materialized (select id from app.things limit 1)
  select * from things;
  perform app.thing_row(p_organization_id);
  perform app.fail(404, 'not_found', 'FROM things');
end
$$;
`;
const ROW = `-- The thing.
create or replace function app.thing_row(p_organization_id uuid)
  returns jsonb
  language sql stable
as $$
  select to_jsonb(t) from app.things t
$$;
`;
const VIEW = `create view reporting.things with (security_barrier) as
select t.organization_id from app.things t;
comment on view reporting.things is 'Things.';
`;
const ACCESS = {
  defaultOwner: 'runner_scoped',
  owners: {},
  execute: { runner_api: { things: ['thing_create'] } },
};

t.test('what keeps to them passes, and each breach is named by file and line', async (test) => {
  const lint = (changed: Readonly<{ table?: string; transition?: string; row?: string; view?: string }> = {}) =>
    lintSql(
      test.testdir({
        migrations: { '000201_things.sql': changed.table ?? TABLE },
        triggers: { 'access.json': JSON.stringify({ ...ACCESS, execute: {} }) },
        functions: {
          'access.json': JSON.stringify(ACCESS),
          things: { 'thing_create.sql': changed.transition ?? TRANSITION, 'thing_row.sql': changed.row ?? ROW },
        },
        reporting: { 'things.sql': changed.view ?? VIEW },
      }),
    );
  test.same(await lint(), []);

  const tables: readonly (readonly [string, string, RegExp])[] = [
    [
      'alter table app.things force row level security;\n',
      '',
      /000201_things\.sql:2: app\.things: row security is not forced/,
    ],
    ['alter table app.things enable row level security;\n', '', /:2: app\.things: row security is not enabled/],
    ['create policy owner_all', 'create policy other', /:2: app\.things: its owner has no policy/],
    ["comment on column app.things.id is 'Its id.';\n", '', /:2: app\.things: id has no comment/],
    ['comment on table', 'comment on view', /:2: app\.things: the table has no comment/],
    [' on delete cascade', '', /:7: a foreign key says what a deletion does/],
    ['create table', 'CREATE table', /:2: keywords are lower-case: create/],
    ['not null,', 'not null, ', /:3: trailing blanks/],
  ];
  for (const [text, other, breach] of tables) {
    const found = await lint({ table: TABLE.replace(text, other) });
    test.equal(found.filter((line) => breach.test(line)).length, 1, `${breach}: ${found}`);
  }

  const transitions: readonly (readonly [string, string, RegExp])[] = [
    ['-- (none)', '(none)', /things\/thing_create\.sql:1: a comment at the head says what the function does/],
    [' Codes: 404 not_found.', '', /:1: the head does not name 404 not_found/],
    ['p_organization_id uuid)', 'p_id uuid, p_organization_id uuid)', /:2: .* takes p_organization_id first/],
    ['app.thing_create(', 'app.thing_made(', /:1: the file creates app\.thing_create and no other/],
    ['from app.things', 'from things', /^$/],
    ['with things as', 'with others as', /:8: things without its schema: app\.things/],
    ['app.thing_row(', 'thing_row(', /:9: thing_row\(…\) without its schema/],
    ['limit 1', 'limit 1 offset 20', /:7: no offset/],
    ['limit 1', 'limit 1 offset 0', /^$/],
    ['$$;\n', '$$;\nrevoke all on function app.thing_create from public;\n', /:13: .* declared in access\.json/],
    ['security definer', 'security definer set search_path = app', /:4: .* declared in access\.json/],
  ];
  for (const [text, other, breach] of transitions) {
    const found = await lint({ transition: TRANSITION.replace(text, other) });
    if (breach.test('')) test.same(found, [], other);
    else test.match(found.join('\n'), breach, other);
  }

  test.match(await lint({ view: VIEW.replace(' with (security_barrier)', '') }), [
    /things\.sql:1: .* a security barrier/,
  ]);
});
