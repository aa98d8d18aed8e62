import { randomBytes } from 'node:crypto';
import { databaseUrl, execute, startTestPostgres } from './postgres.ts';

let ownServer: Promise<string> | undefined;

/** The Postgres of the test run, handed over by scripts/test.ts; a file that runs alone starts its own. */
async function templateUrl(): Promise<string> {
  const given = process.env['TEST_DATABASE_URL'];
  if (given) return given;
  ownServer ??= startTestPostgres().then((server) => {
    // It must not keep the process alive, and goes when nothing else does.
    server.unref();
    process.once('beforeExit', () => void server.stop());
    return server.url;
  });
  return ownServer;
}

/** A database that lives until it is dropped, or with its server. */
export async function makeDatabase(
  template: string | undefined,
): Promise<Readonly<{ url: string; name: string; drop: () => Promise<void> }>> {
  const source = await templateUrl();
  // Nobody may be connected to a template that is being cloned: statements go through the database postgres.
  const server = databaseUrl(source, 'postgres');
  // Files are copied in half the time that it takes by way of the log.
  const name = `test_${process.pid}_${randomBytes(6).toString('hex')}`;
  await execute(server, `create database ${name} template ${template ?? 'template0'} strategy file_copy`);
  const drop = () => execute(server, `drop database if exists ${name} with (force)`);
  return { url: databaseUrl(source, name), name, drop };
}
