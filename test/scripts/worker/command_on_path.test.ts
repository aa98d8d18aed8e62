import t from 'tap';
import { setUp } from './run_world.ts';
import { ORGANIZATION } from './stand_in.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

t.test('a command has business-runner on its PATH, as the run and nobody else', async (t) => {
  const shown = [
    'printf "%s\\n" "$BUSINESS_RUNNER_ORGANIZATION" "$BUSINESS_RUNNER_TOKEN" > "$OUTPUT_DIR/run"',
    'command -v business-runner > "$OUTPUT_DIR/where"; env > "$OUTPUT_DIR/env"',
    'business-runner call --help > "$OUTPUT_DIR/help"; business-runner task list 2> "$OUTPUT_DIR/refused"',
    'grep -c "business-runner call KEY TOOL" TASK.md > "$OUTPUT_DIR/told"',
  ].join('\n');
  const { work, of } = await setUp(t, {}, shown);
  t.equal(await work(), true);
  const output = (name: string) => String(of('output').find((call) => call.path.endsWith(`/${name}`))?.body);
  t.match(output('run'), new RegExp(`^${ORGANIZATION}\\n\\S+\\n$`));
  t.match(output('where'), /\/\.business-runner\/bin\/business-runner\n$/);
  t.match(output('help'), /^business-runner call KEY TOOL/);
  t.match(output('refused'), /task list is for people/);
  t.match(output('told'), '1');
  t.notMatch(output('env'), /=service\n/);
});
