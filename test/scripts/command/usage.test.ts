import t from 'tap';
import { COMMAND_NAMES, readCommand } from '../../../scripts/command/options.ts';
import { begin } from './set_up.ts';

const COLUMNS = 80;

/** The examples of a help text, as the words that a shell makes of each. */
function examplesOf(help: string): string[][] {
  const lines = help.replaceAll('\\\n', ' ').split('\n');
  return lines.flatMap((line) => {
    const [, typed] = /^ {2}(?:npx )?business-runner ([^>]+)/.exec(line) ?? [];
    if (typed === undefined) return [];
    return [[...typed.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, one, two, bare]) => one ?? two ?? bare ?? '')];
  });
}

for (const name of COMMAND_NAMES) {
  t.test(`the help of ${name} has an example that is a right command line`, async (t) => {
    const { status, out, err } = await begin({}, ...name.split(' '), '--help').ended;
    t.match({ status, err }, { status: 0, err: '' });
    const called = examplesOf(out).map((argv) => readCommand(argv)?.name);
    t.ok(called.includes(name as (typeof called)[number]), `${name} among ${called.join(', ')}`);
    t.match(out, /\nExit status: 0/);
  });
}

t.test('help fits a terminal, and names what help there is', async (t) => {
  const topics = [...new Set(COMMAND_NAMES.map((name) => name.split(' ')[0] ?? ''))];
  const texts = await Promise.all(
    [[], ...topics.map((topic) => [topic])].map((of) => begin({}, ...of, '--help').ended),
  );
  t.equal(new Set(texts.map(({ out }) => out)).size, topics.length + 1);
  for (const { out } of texts)
    t.same(
      out.split('\n').filter((line) => line.length > COLUMNS && !line.includes('https://')),
      [],
    );
});
